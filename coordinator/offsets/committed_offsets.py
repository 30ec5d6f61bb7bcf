"""The offsets that groups have committed, by group, topic name and partition (pure).

An offset belongs to a topic's name and, if known, to its id: an offset of a deleted topic does not count for
a new topic of the same name. Offsets in open transactions are kept apart (`pending_offsets`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.pending_offsets import PendingOffsets
from barnabas.protocol.classic_group_records import OffsetCommitKey, OffsetCommitValue

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
        return self._find(key) is not None or self.pending.is_pending(key)

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

    def replay(self, record_key: OffsetCommitKey, value: OffsetCommitValue | None, log_offset: int) -> None:
        """Apply a record; a tombstone also removes pending offsets. A tombstone of an unknown key does
        nothing.
        """
        key = _key_of(record_key)
        if value is None:
            self._remove(key)
            self.pending.remove(key)
        else:
            self._put(key, _committed(value, log_offset))

    def replay_pending(
        self,
        log_partition: int,
        producer_id: int,
        record_key: OffsetCommitKey,
        value: OffsetCommitValue,
        log_offset: int,
    ) -> None:
        """Apply a record of a producer's transaction."""
        self.pending.add(log_partition, producer_id, _key_of(record_key), _committed(value, log_offset))

    def end_transaction(self, log_partition: int, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended: its pending offsets are committed now, or dropped."""
        ended = self.pending.end(log_partition, producer_id)
        for key, committed in ended.items() if commit else ():
            earlier = self._find(key)
            if earlier is None or earlier.log_offset < committed.log_offset:
                self._put(key, committed)

    def forget_partition(self, log_partition: int) -> None:
        """Forget all offsets of that partition of the log."""
        self._by_partition.pop(log_partition, None)
        self.pending.forget_partition(log_partition)

    def _find(self, key: OffsetKey) -> CommittedOffset | None:
        return self.of_group(key.group_id).get(key.topic_name, {}).get(key.partition)

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


def _committed(value: OffsetCommitValue, log_offset: int) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp_ms,
        value.expire_timestamp_ms,
        value.topic_id,
        log_offset,
    )
