"""Finds or loads the leaders for a fetch, and lets a new group begin where its reset policy says."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.clock import Clock
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.share.fetch.share_group_config import ShareGroupConfig, ShareGroupConfigs
from barnabas.share.leader.share_counts import ShareCounts
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.leader.start_offset import StartSearch
from barnabas.share.leader.zero_starts import ZeroStarts
from barnabas.storage.errors import LogOffline, StorageError


class LateError(ApiError):
    """A temporary error, which a fetch answers at the end of its wait. So no client asks again at once."""


class NoShareState(LateError):  # noqa: N818  named as the condition
    """The group has no share state in the partition: no member has subscribed to it, or it was deleted."""


class FetchSource:
    """The leaders that fetches ask for. Their partitions' logs are open, or could not be opened."""

    def __init__(
        self,
        image: MetadataImage,
        logs: PartitionLogs,
        groups: ShareGroupCoordinator,
        configs: ShareGroupConfigs,
        share_partitions: SharePartitions,
        clock: Clock,
        time_lookups: StepwiseWork,
    ) -> None:
        self._image = image
        self._logs = logs
        self._groups = groups
        self._configs = configs
        self._share_partitions = share_partitions
        self._clock = clock
        self._time_lookups = time_lookups
        self.counts: Final[ShareCounts] = share_partitions.counts
        """Where fetches are counted."""
        self._zero_starts = ZeroStarts(groups.record_zero_starts)

    def find_topic(self, partition: TopicIdPartition) -> Topic:
        """The partition's topic; raises ApiError if either isn't there."""
        topic = self._image.topics_by_id.get(partition.topic_id)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_id)
        if not 0 <= partition.partition < len(topic.partitions):
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        return topic

    def lead(self, key: SharePartitionKey) -> SharePartitionLeader | None:
        """The leader of a partition that the group has state in; None while that is being loaded or reset.
        Raises ApiError or StorageError.
        """
        leader = self._share_partitions.get(key)
        if leader is None:
            return self._load(key)
        if leader.log.offline is not None:
            raise LogOffline(str(leader.log.offline))
        return leader

    async def load_leader(self, key: SharePartitionKey) -> SharePartitionLeader:
        """As `lead`, but opens the log and waits for the leader."""
        opening = self._logs.open_by_id([key.topic_id_partition])
        if opening is not None:
            await opening
        while (leader := self.lead(key)) is None:
            under_way = self._share_partitions.under_way(key)
            assert under_way is not None
            await under_way
        return leader

    def leadership_error(self, partition: TopicIdPartition) -> ApiError | StorageError:
        """The error of an acknowledgement for a partition that has no leader at present. A log that went
        offline is opened again.

        A leader ends with its log, and all locks end with the leader: when the log is open again, no member
        holds its records. Otherwise nothing was ever fetched: UNKNOWN_TOPIC_OR_PARTITION, as in Kafka.
        """
        try:
            self.find_topic(partition)
        except ApiError as error:
            return without_frames(error)
        reason = self._logs.why_unwritable(partition)
        if reason is not None:
            self._logs.reopen(partition)
            return without_frames(reason)
        if self._logs.was_replaced(partition):
            message = "The locks on this partition's records have ended: its log failed and was opened anew."
            return ApiError(ErrorCode.invalid_record_state, message)
        return ApiError(ErrorCode.unknown_topic_or_partition, "Nothing was fetched from this partition.")

    @property
    def serves_share_groups(self) -> bool:
        """Whether the feature `share.version` is on; without it nothing is acquired."""
        return share_groups_enabled(self._image)

    def leader_for_fetch(self, group_id: str, partition: TopicIdPartition) -> SharePartitionLeader | None:
        """The leader, once it has a start offset; None while that is being recorded, or the state is being
        loaded or reset. Raises ApiError or StorageError.
        """
        key = SharePartitionKey(group_id, *partition)
        leader = self._share_partitions.get(key)
        if leader is None or leader.log.offline is not None:
            leader = self.lead(key)
            if leader is None:
                return None
        if not leader.core.is_initialised:
            self._begin(leader)
            if not leader.core.is_initialised:
                return None
        return leader

    def now_ms(self) -> int:
        """Monotonic."""
        return self._clock.monotonic_ms()

    def config_of(self, group_id: str) -> ShareGroupConfig:
        """The group's settings as they are now."""
        return self._configs.of(group_id)

    def _load(self, key: SharePartitionKey) -> SharePartitionLeader | None:
        if self._share_partitions.under_way(key) is not None:
            return None
        topic = self.find_topic(key.topic_id_partition)
        initialised = self._groups.initialised_partitions(key.group_id).get(key.topic_id)
        if initialised is None or key.partition not in initialised.partitions:
            message = (
                f"Share group {key.group_id} does not read this partition: no member has subscribed to "
                "it, or the group is being loaded."
            )
            raise NoShareState(ErrorCode.unknown_server_error, message)
        log = self._logs.get(topic, key.partition)
        if log is None:
            raise LogOffline(f"{topic.name}-{key.partition} could not be opened.")
        try:
            return self._share_partitions.lead(key, log)
        except ApiError as error:
            raise LateError(error.code, error.message) from error

    def _begin(self, leader: SharePartitionLeader) -> None:
        """Decide where the group begins, unless that is being recorded, or searched for."""
        start, log = leader.start, leader.log
        if start.is_being_recorded:
            return
        reset = self._configs.of(leader.group_id).auto_offset_reset
        if reset.strategy == "by_duration":
            self._begin_by_duration(leader, reset.duration_ms)
        elif log.log_end_offset == 0:
            start.begin_at_zero(self._zero_starts.add(leader.key))
        elif start.chose_zero:
            start.begin_at(0)
        elif reset.strategy == "earliest":
            start.begin_at(log.log_start_offset)
        else:
            start.begin_at(log.high_watermark)

    def _begin_by_duration(self, leader: SharePartitionLeader, duration_ms: int) -> None:
        search = leader.start.search
        if search is None or search.duration_ms != duration_ms or search.is_outdated:
            leader.start.search = StartSearch(
                leader.log,
                duration_ms,
                self._clock.wall_ms(),
                self._time_lookups,
                on_done=lambda: self._share_partitions.wake_fetches(leader.key),
            )
        elif search.is_done:
            if not search.found_nothing:
                # Also if it failed, which is told once: the next fetch searches anew.
                leader.start.search = None
            start_offset = search.start_offset()
            if start_offset is None:
                message = f"No record is younger than the {duration_ms} ms that the group begins with."
                raise LateError(ErrorCode.offset_not_available, message)
            leader.start.begin_at(start_offset)
