"""The offsets that groups have committed, by group, topic name and partition.

An offset belongs to a topic's name and, if known, to its id: an offset of a deleted topic does not count for
a new topic of the same name. Offsets in open transactions are kept apart (`pending_offsets`), and so are
ranges beyond an offset that were committed individually (`individual_ranges`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.individual_ranges import IndividualRanges, PendingRange
from barnabas.coordinator.offsets.pending_offsets import PendingOffsets
from barnabas.protocol.classic_group_records import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.committed_ranges import NOTHING_COMMITTED, OffsetRange
from barnabas.protocol.offset_range_records import OffsetRangeKey, OffsetRangeValue
from barnabas.runtime.moment import MonotonicOf

_ByTopic = dict[str, dict[int, CommittedOffset]]
TopicPartitions = Mapping[str, Mapping[int, CommittedOffset]]
"""One group's offsets by topic name and partition."""


class CommittedOffsets:
    """All offsets of all groups."""

    def __init__(self, partition_of_group: Callable[[str], int]) -> None:
        """`partition_of_group` returns the partition of the log with a group's records. Its results may
        change while all partitions are forgotten.
        """
        self._partition_of_group = partition_of_group
        self._by_partition: dict[int, dict[str, _ByTopic]] = {}
        """The offsets of each group, by the partition of the log with its records."""
        self.pending = PendingOffsets()
        self.individual = IndividualRanges(partition_of_group)

    def of_group(self, group_id: str) -> TopicPartitions:
        return self._by_partition.get(self._partition_of_group(group_id), {}).get(group_id, {})

    def keys_of_group(self, group_id: str) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """All offsets of one group."""
        for topic_name, partitions in self.of_group(group_id).items():
            for partition, committed in partitions.items():
                yield OffsetKey(group_id, topic_name, partition), committed

    def count_of_group(self, group_id: str) -> int:
        """The number of offsets that the group has in force."""
        return sum(map(len, self.of_group(group_id).values()))

    def all_keys_of_group(self, group_id: str) -> list[OffsetKey]:
        """The keys of one group's committed and pending offsets, each once."""
        committed = [key for key, _ in self.keys_of_group(group_id)]
        return list(dict.fromkeys([*committed, *self.pending.keys_of_group(group_id)]))

    def has(self, key: OffsetKey) -> bool:
        """Whether the key has a committed or pending offset."""
        return self.find(key) is not None or self.is_pending(key)

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction has an offset or ranges for this key."""
        return self.pending.is_pending(key) or any(self.individual.pending(key))

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has an offset or ranges for the group."""
        return self.pending.has_group(group_id) or self.individual.has_pending(group_id)

    def topics(self) -> set[tuple[str, UUID]]:
        """The names and ids of the topics with committed or pending offsets."""
        committed = {
            (name, committed.topic_id)
            for groups in self._by_partition.values()
            for by_topic in groups.values()
            for name, partitions in by_topic.items()
            for committed in partitions.values()
        }
        return committed | self.pending.topics()

    def keys_of_topics(self, log_partition: int, topics: Mapping[str, Set[UUID]]) -> list[OffsetKey]:
        """The keys of committed and pending offsets in one partition of the log, for topics with exactly
        these names and ids; each once.
        """
        committed = [
            OffsetKey(group_id, name, partition)
            for group_id, by_topic in self._by_partition.get(log_partition, {}).items()
            for name in by_topic.keys() & topics.keys()
            for partition, committed in by_topic[name].items()
            if committed.topic_id in topics[name]
        ]
        return list(dict.fromkeys([*committed, *self.pending.keys_of_topics(log_partition, topics)]))

    def find(self, key: OffsetKey) -> CommittedOffset | None:
        """The offset in force."""
        return self.of_group(key.group_id).get(key.topic_name, {}).get(key.partition)

    # Replay

    def replay(
        self,
        record_key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        log_offset: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        """Apply a record; a tombstone also removes pending offsets, and all ranges. A tombstone of an unknown
        key does nothing.
        """
        key = _key_of(record_key)
        if value is None:
            self._remove(key)
            self.pending.remove(key)
            self.individual.remove(key)
        else:
            self._put_record(key, _committed(value, log_offset, monotonic_of))

    def replay_range(
        self, record_key: OffsetRangeKey, value: OffsetRangeValue | None, monotonic_of: MonotonicOf
    ) -> None:
        """Apply the record of a range outside of transactions."""
        key, offset_range = _range_of(record_key)
        if value is not None:
            self._put_range(key, offset_range, monotonic_of(value.commit_timestamp_ms))
            return
        self.individual.remove_pending(key, offset_range)
        found = self.individual.find(key)
        if found is not None:
            found.replay_tombstone(offset_range)
            self.individual.drop_if_empty(key)

    def replay_pending(
        self,
        log_partition: int,
        producer_id: int,
        record_key: OffsetCommitKey,
        value: OffsetCommitValue,
        log_offset: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        """Apply a record of a producer's transaction."""
        committed = _committed(value, log_offset, monotonic_of)
        self.pending.add(log_partition, producer_id, _key_of(record_key), committed)

    def replay_pending_range(
        self,
        log_partition: int,
        producer_id: int,
        record_key: OffsetRangeKey,
        value: OffsetRangeValue,
        log_offset: int,
        monotonic_of: MonotonicOf,
    ) -> None:
        """Apply the record of a range in a producer's transaction."""
        key, offset_range = _range_of(record_key)
        committed_at_ms = monotonic_of(value.commit_timestamp_ms)
        pending = PendingRange(offset_range, committed_at_ms, value.topic_id, value.member_id, log_offset)
        self.individual.add_pending(log_partition, producer_id, key, pending)

    def end_transaction(self, log_partition: int, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended: its pending offsets and ranges are committed now, or dropped.

        An ordinary offset takes all ranges out of force that were written before it.
        """
        offsets = self.pending.end(log_partition, producer_id)
        ranges = self.individual.end(log_partition, producer_id)
        if not commit:
            return
        for key, committed in offsets.items():
            earlier = self.find(key)
            if earlier is None or earlier.log_offset < committed.log_offset:
                self._put_record(key, committed)
        for key, pending in ranges.items():
            since = offsets[key].log_offset if key in offsets else -1
            for pending_range in pending:
                if pending_range.log_offset > since:
                    self._put_range(key, pending_range.added, pending_range.committed_at_ms)

    def forget_partition(self, log_partition: int) -> None:
        """Forget all offsets of that partition of the log."""
        self._by_partition.pop(log_partition, None)
        self.pending.forget_partition(log_partition)
        self.individual.forget_partition(log_partition)

    def _put_record(self, key: OffsetKey, committed: CommittedOffset) -> None:
        found = self.individual.find(key)
        if found is not None:
            if committed.keeps_ranges:
                found.replay_stable(committed.offset - 1)
                # Ranges may have reached further in a transaction.
                committed = committed._replace(offset=found.ranges.stable_offset + 1)
            else:
                found.replay_reset(committed.offset - 1)
            self.individual.drop_if_empty(key)
        self._put(key, committed)

    def _put_range(self, key: OffsetKey, offset_range: OffsetRange, committed_at_ms: int) -> None:
        committed = self.find(key)
        # Compaction may leave a range in front of its committed offset.
        stable_offset = NOTHING_COMMITTED if committed is None else committed.offset - 1
        found = self.individual.begin(key, stable_offset)
        found.replay_range(offset_range, committed_at_ms)
        if committed is not None and found.ranges.stable_offset >= committed.offset:
            self._put(key, committed._replace(offset=found.ranges.stable_offset + 1))

    def _put(self, key: OffsetKey, committed: CommittedOffset) -> None:
        groups = self._by_partition.setdefault(self._partition_of_group(key.group_id), {})
        groups.setdefault(key.group_id, {}).setdefault(key.topic_name, {})[key.partition] = committed

    def _remove(self, key: OffsetKey) -> None:
        groups = self._by_partition.get(self._partition_of_group(key.group_id), {})
        by_topic = groups.get(key.group_id, {})
        partitions = by_topic.get(key.topic_name, {})
        partitions.pop(key.partition, None)
        if not partitions:
            by_topic.pop(key.topic_name, None)
        if not by_topic:
            groups.pop(key.group_id, None)


def _key_of(key: OffsetCommitKey) -> OffsetKey:
    return OffsetKey(key.group, key.topic, key.partition)


def _range_of(key: OffsetRangeKey) -> tuple[OffsetKey, OffsetRange]:
    return OffsetKey(key.group, key.topic, key.partition), OffsetRange(key.first_offset, key.last_offset)


def _committed(value: OffsetCommitValue, log_offset: int, monotonic_of: MonotonicOf) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        monotonic_of(value.commit_timestamp_ms),
        value.expire_timestamp_ms,
        value.topic_id,
        log_offset,
        value.keeps_ranges,
    )
