"""`__share_group_state` with the share coordinator over it, and the upkeep of its records.

Exists only with `share.state.store=topic`. The states are loaded before the broker serves, except those of
partitions that cannot be read. Kafka loads a partition's states when it becomes the partition's leader.
"""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.coordinator_topic import BrokerParts, CoordinatorTopic
from barnabas.broker.internal_topics.internal_topics import share_state_topic
from barnabas.coordinator.metadata.topic_catalog import ImageTopics
from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from barnabas.runtime.clock import Clock
from barnabas.share.topic_store.topic_state_store import TopicStateStore


class ShareStateTopic(CoordinatorTopic):
    """The share coordinator of this broker, with the log under it and the leaders' state store over it."""

    def __init__(self, parts: BrokerParts) -> None:
        config, metadata, clock = parts.config, parts.metadata, parts.clock
        topic = parts.internal_topic(share_state_topic(config))
        self.coordinator = ShareCoordinator(
            log=topic,
            catalog=ImageTopics(metadata.image, lambda: metadata.last_offset),
            settings=ShareCoordinatorSettings(
                partition_count=topic.partition_count,
                updates_per_snapshot=config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
                cold_interval_ms=config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
            ),
            now_ms=clock.monotonic_ms,
            wall_ms=clock.wall_ms,
        )
        super().__init__(topic, self.coordinator, parts)
        self.store = TopicStateStore(self.coordinator, clock.wall_ms, parts.log_directory.full_disk)
        self._upkeep = ShareStateUpkeep(config, self.coordinator, clock)
        self._topics_by_id = metadata.image.topics_by_id

    def begin_upkeep(self) -> None:
        """The topic is loaded: delete the states of deleted topics. From now on, until the deadlines end,
        prune the topic and write snapshots of cold states.
        """
        self._on_loaded()
        self._schedule(self._upkeep)

    async def _finish_work(self) -> None:
        await self.store.drained()

    def _on_loaded(self) -> None:
        """Delete the states of deleted topics. A crash or a failed write may have kept them."""
        gone = {key.topic_id for key in self.coordinator.states() if key.topic_id not in self._topics_by_id}
        if gone:
            self.coordinator.on_topics_deleted(gone)


class ShareStateUpkeep:
    """Prunes the topic and writes snapshots of cold states, each in its own interval (`Expirable`)."""

    def __init__(self, config: BrokerConfig, coordinator: ShareCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
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
            self._coordinator.snapshot_cold()
        if now_ms >= self._prune_at_ms:
            self._prune_at_ms = now_ms + self._prune_interval_ms
            self._coordinator.prune()
