"""The ranges that one query has acquired and not settled yet. Pure.

Acquired ranges wait until a batch takes them; then they are out until that batch is done. The broker may end
a lock at any time: then the range is removed here. A waiting range will be delivered again; a range that was
out goes into the `ledger` after its batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.pipeline.share_source.ranges import (
    AcquiredRange,
    OffsetRange,
    cut_front,
    intersect,
    join_acquired,
    offset_count,
    partition_acquired,
    subtract,
    union,
)
from barnabas.protocol.identity import TopicIdPartition

Batch = dict[TopicIdPartition, list[AcquiredRange]]
EndOffsets = Mapping[TopicIdPartition, int]
"""Exclusive; a partition that is missing has no bound."""


class _Waiting(NamedTuple):
    acquired: AcquiredRange
    lock_deadline_ms: int


class HeldRanges:
    """The ranges that this member holds the locks of, as far as it knows. Times are those of the loop."""

    def __init__(self) -> None:
        self._waiting: dict[TopicIdPartition, list[_Waiting]] = {}
        self._out: dict[TopicIdPartition, list[OffsetRange]] = {}

    def waiting_count(self, before: EndOffsets | None = None) -> int:
        """Offsets that the next batch can have; see `take_batch`."""
        return sum(
            offset_count(_in_front_of((locked.acquired for locked in waiting), partition, before))
            for partition, waiting in self._waiting.items()
        )

    @property
    def partitions(self) -> set[TopicIdPartition]:
        return self._waiting.keys() | self._out.keys()

    def held(self, partition: TopicIdPartition) -> list[OffsetRange]:
        """All locked ranges of a partition."""
        waiting = (locked.acquired for locked in self._waiting.get(partition, ()))
        return union(self._out.get(partition, []), waiting)

    def acquire(
        self, partition: TopicIdPartition, acquired: Iterable[AcquiredRange], lock_deadline_ms: int
    ) -> int:
        """Adds ranges that wait for a batch; returns the number of offsets that were already waiting.

        Their locks had ended before this clock showed it, for example on a suspended machine.
        """
        added = [_Waiting(acquired_range, lock_deadline_ms) for acquired_range in acquired]
        if not added:
            return 0
        waiting = union(locked.acquired for locked in self._waiting.get(partition, ()))
        again = intersect(waiting, union(locked.acquired for locked in added))
        if again:
            self._drop_waiting(partition, again)
        self._waiting.setdefault(partition, []).extend(added)
        return offset_count(again)

    def take_batch(self, count_max: int, range_count_max: int, before: EndOffsets | None = None) -> Batch:
        """The ranges of the next batch, the longest waiting partition first: they are out from now on.

        `before` has the bounds by partition, exclusive; ranges beyond them go on waiting.
        """
        batch: Batch = {}
        for partition in list(self._waiting):
            if count_max <= 0 or range_count_max <= 0:
                break
            taken = self._take(partition, count_max, range_count_max, before)
            if taken:
                batch[partition] = taken
                count_max -= offset_count(taken)
                range_count_max -= len(taken)
        return batch

    def _take(
        self, partition: TopicIdPartition, count_max: int, range_count_max: int, before: EndOffsets | None
    ) -> list[AcquiredRange]:
        joined = join_acquired(locked.acquired for locked in self._waiting[partition])
        taken, _ = cut_front(_in_front_of(joined, partition, before)[:range_count_max], count_max)
        ranges = union(taken)
        self._out[partition] = union(self._out.get(partition, []), ranges)
        self._drop_waiting(partition, ranges)
        return taken

    def take_out(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange]) -> list[AcquiredRange]:
        """A batch has the waiting ones of these ranges: they are out from now on."""
        waiting = join_acquired(locked.acquired for locked in self._waiting.get(partition, ()))
        _, taken = partition_acquired(waiting, union(ranges))
        offsets = union(taken)
        self._put_out(partition, union(self._out.get(partition, []), offsets))
        self._drop_waiting(partition, offsets)
        return taken

    def settle(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """A batch with these ranges is done: removes and returns those that are still held."""
        out = self._out.get(partition, [])
        held = intersect(union(ranges), out)
        self._put_out(partition, subtract(out, held))
        return held

    def lose(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange] | None = None) -> int:
        """The locks of these ranges, or of a whole partition, have ended; returns how many were held."""
        held = self.held(partition)
        lost = held if ranges is None else intersect(union(ranges), held)
        self._put_out(partition, subtract(self._out.get(partition, []), lost))
        self._drop_waiting(partition, lost)
        return offset_count(lost)

    def renew(
        self, partition: TopicIdPartition, ranges: Iterable[OffsetRange], lock_deadline_ms: int
    ) -> None:
        """Sets the deadline of the waiting ones of these ranges; ranges that are out have none."""
        renewed = union(ranges)
        waiting = self._waiting.get(partition, ())
        pieces = [
            (partition_acquired([locked.acquired], renewed), locked.lock_deadline_ms) for locked in waiting
        ]
        if pieces:
            others = [
                _Waiting(acquired_range, until_ms)
                for (outside, _), until_ms in pieces
                for acquired_range in outside
            ]
            inside = [
                _Waiting(acquired_range, lock_deadline_ms)
                for (_, inside), _ in pieces
                for acquired_range in inside
            ]
            self._waiting[partition] = others + inside

    def expire(self, now_ms: int) -> int:
        """Removes waiting ranges whose locks have ended; returns the number of offsets."""
        expired = {
            partition: union(locked.acquired for locked in waiting if locked.lock_deadline_ms <= now_ms)
            for partition, waiting in self._waiting.items()
        }
        return sum(self.lose(partition, ended) for partition, ended in expired.items() if ended)

    def _drop_waiting(self, partition: TopicIdPartition, ranges: list[OffsetRange]) -> None:
        kept = [
            _Waiting(piece, lock_deadline_ms)
            for acquired, lock_deadline_ms in self._waiting.get(partition, ())
            for piece in partition_acquired([acquired], ranges)[0]
        ]
        if kept:
            self._waiting[partition] = kept
        else:
            self._waiting.pop(partition, None)

    def _put_out(self, partition: TopicIdPartition, ranges: list[OffsetRange]) -> None:
        if ranges:
            self._out[partition] = ranges
        else:
            self._out.pop(partition, None)


def _in_front_of(
    acquired: Iterable[AcquiredRange], partition: TopicIdPartition, before: EndOffsets | None
) -> list[AcquiredRange]:
    if before is None:
        return list(acquired)
    end_offset = before.get(partition, 0)
    return partition_acquired(acquired, [OffsetRange(0, end_offset - 1)])[1] if end_offset > 0 else []
