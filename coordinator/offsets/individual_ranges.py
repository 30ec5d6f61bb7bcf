"""The ranges of offsets that groups have committed individually, by group and partition, in force and in open
transactions. Pure.

They lie beyond the ordinary committed offset of their partition, which `committed_offsets` keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.offsets.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.offsets.partition_ranges import PartitionRanges
from barnabas.protocol.committed_ranges import OffsetRange

_Ends = tuple[int, int]
"""A partition of the log and a producer id, whose transaction one marker ends."""


class PendingRange(NamedTuple):
    """A range in an open transaction."""

    added: OffsetRange
    committed_at_ms: int
    """Monotonic."""
    topic_id: UUID
    member_id: str
    log_offset: int


class IndividualRanges:
    """The ranges of all groups."""

    def __init__(self, partition_of_group: Callable[[str], int]) -> None:
        """`partition_of_group` returns the partition of the log with a group's records. Its results may
        change while all partitions are forgotten.
        """
        self._partition_of_group = partition_of_group
        self._by_partition: dict[int, dict[OffsetKey, PartitionRanges]] = {}
        self._pending: dict[_Ends, dict[OffsetKey, list[PendingRange]]] = {}

    # In force

    def find(self, key: OffsetKey) -> PartitionRanges | None:
        """The ranges of a partition; None if it has none."""
        return self._by_partition.get(self._partition_of_group(key.group_id), {}).get(key)

    def begin(self, key: OffsetKey, stable_offset: int) -> PartitionRanges:
        """The ranges of a partition, which begins to have some behind this offset if it had none."""
        by_key = self._by_partition.setdefault(self._partition_of_group(key.group_id), {})
        found = by_key.get(key)
        if found is None:
            found = by_key[key] = PartitionRanges(stable_offset)
        return found

    def refreshed(self, key: OffsetKey, committed: CommittedOffset) -> CommittedOffset:
        """The committed offset of a partition with the time of its last commit of any kind."""
        found = self.find(key)
        last_ms = None if found is None else found.committed_at_ms
        if last_ms is None or last_ms <= committed.committed_at_ms:
            return committed
        return committed._replace(committed_at_ms=last_ms)

    def drop_if_empty(self, key: OffsetKey) -> None:
        """Forget a partition that has no range left."""
        found = self.find(key)
        if found is not None and found.is_empty:
            self._drop(key)

    def remove(self, key: OffsetKey) -> None:
        """Forget the ranges of a partition, pending ones too: its committed offset was deleted."""
        self._drop(key)
        for by_key in self._pending.values():
            by_key.pop(key, None)

    def forget_partition(self, log_partition: int) -> None:
        """Forget the ranges whose records are in that partition of the log."""
        self._by_partition.pop(log_partition, None)
        for ends in [ends for ends in self._pending if ends[0] == log_partition]:
            del self._pending[ends]

    # In open transactions

    def add_pending(
        self, log_partition: int, producer_id: int, key: OffsetKey, pending: PendingRange
    ) -> None:
        """A producer's transaction commits a range."""
        by_key = self._pending.setdefault((log_partition, producer_id), {})
        by_key.setdefault(key, []).append(pending)

    def remove_pending(self, key: OffsetKey, removed: OffsetRange) -> None:
        """The record of a range is gone, also if it belongs to an open transaction."""
        for by_key in self._pending.values():
            if key in by_key:
                by_key[key] = [pending for pending in by_key[key] if pending.added != removed]

    def end(self, log_partition: int, producer_id: int) -> dict[OffsetKey, list[PendingRange]]:
        """The producer's transaction has ended: returns and removes its ranges."""
        return self._pending.pop((log_partition, producer_id), {})

    def keys_of_transaction(self, log_partition: int, producer_id: int) -> Iterable[OffsetKey]:
        """The partitions for which the producer's open transaction has ranges."""
        return list(self._pending.get((log_partition, producer_id), ()))

    def pending(self, key: OffsetKey) -> Iterator[PendingRange]:
        """The ranges of a partition in all open transactions."""
        for by_key in self._pending.values():
            yield from by_key.get(key, ())

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has ranges for the group."""
        return any(
            key.group_id == group_id and ranges
            for by_key in self._pending.values()
            for key, ranges in by_key.items()
        )

    def _drop(self, key: OffsetKey) -> None:
        self._by_partition.get(self._partition_of_group(key.group_id), {}).pop(key, None)
