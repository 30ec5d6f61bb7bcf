"""`__consumer_offsets` with the coordinators of all groups over it.

The groups are loaded before the broker serves, except those of partitions that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas.broker.config.coordinator_settings import (
    classic_group_settings,
    consumer_group_settings,
    offset_settings,
    share_group_settings,
)
from barnabas.broker.config.group_config import ConsumerGroupConfigs, GroupConfigs
from barnabas.broker.internal_topics.coordinator_topic import BrokerParts, CoordinatorTopic
from barnabas.broker.internal_topics.internal_topics import offsets_topic
from barnabas.coordinator.groups import Groups, GroupsSettings
from barnabas.coordinator.metadata.topic_catalog import ImageTopics
from barnabas.coordinator.share_group.interfaces import PartitionLoads, ShareStateInitialiser
from barnabas.protocol.classic_group_records import NO_TOPIC_ID


class OffsetsTopic(CoordinatorTopic):
    """The groups of this broker, with the log under them."""

    def __init__(
        self,
        parts: BrokerParts,
        *,
        configs: GroupConfigs,
        share_state: ShareStateInitialiser,
        partition_loads: PartitionLoads,
        new_uuid: Callable[[], UUID],
    ) -> None:
        config, metadata, clock = parts.config, parts.metadata, parts.clock
        topic = parts.internal_topic(offsets_topic(config))
        self.groups = Groups(
            log=topic,
            partition_count=topic.partition_count,
            catalog=ImageTopics(metadata.image, lambda: metadata.last_offset),
            share_state=share_state,
            partition_loads=partition_loads,
            settings=GroupsSettings(
                share=share_group_settings(config),
                share_configs=configs,
                consumer=consumer_group_settings(config),
                consumer_configs=ConsumerGroupConfigs(configs),
                classic=classic_group_settings(config),
                offsets=offset_settings(config),
                offset_configs=configs,
            ),
            now_ms=clock.monotonic_ms,
            wall_ms=clock.wall_ms,
            new_uuid=new_uuid,
            on_deadline=lambda: self._schedule(self.groups),
        )
        super().__init__(topic, self.groups, parts)
        self._topics_by_name = metadata.image.topics_by_name

    async def load(self) -> None:
        await super().load()
        self._on_loaded()

    def _on_loaded(self) -> None:
        """Watch the sessions that have begun, and delete the offsets of deleted topics. A crash or a failed
        write may have kept such offsets, and a partition that was not loaded has kept them.
        """
        self._schedule(self.groups)
        gone: dict[str, set[UUID]] = {}
        for name, topic_id in self.groups.offsets.topics():
            topic = self._topics_by_name.get(name)
            if topic is None or topic_id not in (topic.topic_id, NO_TOPIC_ID):
                gone.setdefault(name, set()).add(topic_id)
        if gone:
            self.groups.offsets.forget_topics(gone)
