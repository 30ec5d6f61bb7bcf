"""`__share_group_state` at work: the topic, the share coordinator over it, and what is done in intervals.

There only with `share.state.store=topic`. The states are loaded before the broker serves, but for those of
partitions that cannot be read, as Kafka loads them when it comes to lead a partition of the topic.
"""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topic_loader import InternalTopicLoader
from barnabas.broker.internal_topics.internal_topics import share_state_topic
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.topic_catalog import ImageTopics
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.share.topic_store.topic_state_store import TopicStateStore
from barnabas.storage.directory.log_directory import LogDirectory


class ShareStateTopic:
    """The share coordinator of this broker, with the log under it and the store of the leaders over it."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: Controller,
        logs: PartitionLogs,
        log_directory: LogDirectory,
        clock: Clock,
    ) -> None:
        self._metadata = metadata
        self.topic = InternalTopic(share_state_topic(config), metadata, logs, clock)
        self.coordinator = ShareCoordinator(
            log=self.topic,
            catalog=ImageTopics(metadata.image, lambda: metadata.last_offset),
            settings=ShareCoordinatorSettings(
                partition_count=self.topic.partition_count,
                updates_per_snapshot=config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
                cold_interval_ms=config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
            ),
        )
        self.store = TopicStateStore(self.coordinator, clock.wall_ms, log_directory.full_disk)
        self._upkeep = ShareStateUpkeep(config, self.coordinator, clock)
        self.loader = InternalTopicLoader(
            self.topic,
            log_directory,
            partition_count=self.coordinator.partition_count,
            load=self.coordinator.load,
            unload=self.coordinator.unload,
            resize=self.coordinator.resize,
            on_reloaded=self._end_states_of_deleted_topics,
        )

    def begin_upkeep(self, deadlines: Deadlines) -> None:
        """All that can be is loaded: end what is left of deleted topics, and from now on, until the deadlines
        end, prune and write cold states anew.
        """
        self._end_states_of_deleted_topics()
        deadlines.schedule(self._upkeep, self._upkeep.next_deadline_ms())

    def fit(self) -> None:
        """The topic has just been created, perhaps with another number of partitions."""
        self.loader.fit()

    async def close(self) -> None:
        """Wait for what is being written. No client is connected any more."""
        await self.loader.close()
        await self.store.drained()
        await self.topic.drained()

    def _end_states_of_deleted_topics(self) -> None:
        """A crash or a failed write may have left them: it is the deletion of the topic that counts."""
        topics = self._metadata.image.topics_by_id
        gone = {key.topic_id for key in self.coordinator.states() if key.topic_id not in topics}
        if gone:
            self.coordinator.on_topics_deleted(gone)


class ShareStateUpkeep:
    """Prunes the topic and writes cold states anew, each in its own interval (`Expirable`)."""

    def __init__(self, config: BrokerConfig, coordinator: ShareCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._prune_interval_ms = config.integer("share.coordinator.state.topic.prune.interval.ms")
        self._cold_interval_ms = config.integer("share.coordinator.cold.partition.snapshot.interval.ms")
        now_ms = clock.monotonic_ms()
        self._prune_at_ms = now_ms + self._prune_interval_ms
        self._cold_at_ms = now_ms + self._cold_interval_ms

    def next_deadline_ms(self) -> int:
        """See `Expirable`."""
        return min(self._prune_at_ms, self._cold_at_ms)

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        if now_ms >= self._cold_at_ms:
            self._cold_at_ms = now_ms + self._cold_interval_ms
            self._coordinator.snapshot_cold(self._clock.wall_ms())
        if now_ms >= self._prune_at_ms:
            self._prune_at_ms = now_ms + self._prune_interval_ms
            self._coordinator.prune()
