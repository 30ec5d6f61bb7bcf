"""`__consumer_offsets` at work: the topic, the coordinators of all groups over it, and their timers.

The groups are loaded before the broker serves, but for those of partitions that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.group_config import ConsumerGroupConfigs, GroupConfigs
from barnabas.broker.config.group_settings import (
    classic_group_settings,
    consumer_group_settings,
    offset_settings,
    share_group_settings,
)
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topic_loader import InternalTopicLoader
from barnabas.broker.internal_topics.internal_topics import offsets_topic
from barnabas.coordinator.groups import Groups, GroupsSettings
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.topic_catalog import ImageTopics
from barnabas.coordinator.replay.interfaces import Stored
from barnabas.coordinator.share_group.interfaces import ShareStateInitialiser
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.storage.directory.log_directory import LogDirectory


class GroupStateTopic:
    """The groups of this broker, with the log under them."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: Controller,
        logs: PartitionLogs,
        log_directory: LogDirectory,
        clock: Clock,
        deadlines: Deadlines,
        *,
        configs: GroupConfigs,
        share_state: ShareStateInitialiser,
        new_uuid: Callable[[], UUID],
    ) -> None:
        self._metadata = metadata
        self._clock = clock
        self._deadlines = deadlines
        self.topic = InternalTopic(offsets_topic(config), metadata, logs, clock)
        self.groups = Groups(
            log=self.topic,
            partition_count=self.topic.partition_count,
            catalog=ImageTopics(metadata.image, lambda: metadata.last_offset),
            share_state=share_state,
            settings=GroupsSettings(
                share=share_group_settings(config),
                share_configs=configs,
                consumer=consumer_group_settings(config),
                consumer_configs=ConsumerGroupConfigs(configs),
                classic=classic_group_settings(config),
                offsets=offset_settings(config),
            ),
            wall_ms=clock.wall_ms,
            new_uuid=new_uuid,
            on_deadline=self._deadline_moved,
        )
        self._loader = InternalTopicLoader(
            self.topic,
            log_directory,
            partition_count=self.topic.partition_count,
            load=self._load,
            unload=self.groups.unload,
            resize=self.groups.resize,
            on_reloaded=self._forget_deleted_topics,
        )

    async def load(self) -> None:
        """Load every partition that can be, at the start; the others are tried again. OSError."""
        await self._loader.load()
        self._forget_deleted_topics()

    def reload(self, partition: int) -> None:
        """The partition's log was opened anew: begin from what it holds."""
        self._loader.reload(partition)

    def fit(self) -> None:
        """The topic has just been created, perhaps with another number of partitions."""
        self._loader.fit()

    async def close(self) -> None:
        """Wait for what is being written. No client is connected any more."""
        await self._loader.close()
        await self.topic.drained()

    def _deadline_moved(self) -> None:
        """A member's session has begun or been renewed, or something else is waited for."""
        deadline_ms = self.groups.next_deadline_ms()
        if deadline_ms is not None:
            self._deadlines.schedule(self.groups, deadline_ms)

    def _load(self, partition: int, records: Sequence[Stored]) -> Iterator[None]:
        yield from self.groups.load(partition, records, now_ms=self._clock.monotonic_ms)
        self._deadline_moved()

    def _forget_deleted_topics(self) -> None:
        """A crash or a failed write may have kept what was committed for them, and what isn't loaded cannot
        be forgotten: it is the deletion of the topic that counts.
        """
        topics = self._metadata.image.topics_by_name
        gone: dict[str, set[UUID]] = {}
        for name, topic_id in self.groups.offsets.topics():
            topic = topics.get(name)
            if topic is None or topic_id not in (topic.topic_id, NO_TOPIC_ID):
                gone.setdefault(name, set()).add(topic_id)
        if gone:
            self.groups.offsets.forget_topics(gone)
