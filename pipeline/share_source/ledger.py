"""Records that are done but not confirmed: when redelivered, they are settled and not emitted. Pure.

A broker may or may not have processed an acknowledgement that was not confirmed (a lost connection, an ended
lock, a dead driver). The ledger has its offsets and the verdict. They leave the ledger when they are
redelivered and settled, or when the group's start offset (SPSO) has passed them. If the start offset goes
back, a user has reset the group to read records again: then the ledger of the partition is cleared.

Bound: `LEDGER_RANGES_MAX`. As the ledger fills, batches get smaller (`room`), down to one range each.
Redeliveries empty the ledger and come by the same fetches as new records, so fetching must go on. At twice
the bound the ledger raises an error, because acknowledgements have failed for too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.ranges import (
    AcquiredRange,
    OffsetRange,
    intersect,
    offset_count,
    partition_acquired,
    subtract,
    union,
)
from barnabas.protocol.identity import TopicIdPartition

LEDGER_RANGES_MAX: Final = 2_000
"""The bound of the ranges in every offset of Spark's log: some 60 kB of JSON."""
UNKNOWN_OFFSET: Final = -1

RangesByPartition = Mapping[TopicIdPartition, list[OffsetRange]]


class Sorted(NamedTuple):
    """Acquired ranges by their treatment."""

    new: list[AcquiredRange]
    accept: list[AcquiredRange]
    reject: list[AcquiredRange]


class DoneLedger:
    """Ranges by partition, each with the verdict that the broker has not confirmed."""

    def __init__(
        self,
        done: RangesByPartition | None = None,
        rejected: RangesByPartition | None = None,
        start_offsets: Mapping[TopicIdPartition, int] | None = None,
    ) -> None:
        self.done: dict[TopicIdPartition, list[OffsetRange]] = dict(done or {})
        """Ranges to accept when they come again."""
        self.rejected: dict[TopicIdPartition, list[OffsetRange]] = dict(rejected or {})
        """Ranges to reject when they come again."""
        self.start_offsets: dict[TopicIdPartition, int] = dict(start_offsets or {})
        """The last known SPSO, for partitions that have had ranges in the ledger."""

    @property
    def range_count(self) -> int:
        return sum(map(len, self.done.values())) + sum(map(len, self.rejected.values()))

    @property
    def offset_count(self) -> int:
        return sum(offset_count(ranges) for _, ranges in self._everything())

    @property
    def room(self) -> int:
        """The bound of the next batch's ranges: at least one."""
        return max(LEDGER_RANGES_MAX - self.range_count, 1)

    @property
    def partitions(self) -> set[TopicIdPartition]:
        return self.done.keys() | self.rejected.keys()

    @property
    def is_over_bound(self) -> bool:
        """Whether there is more than twice the bound: then no batch may begin."""
        return self.range_count > 2 * LEDGER_RANGES_MAX

    def ranges_of(
        self, batch: Mapping[TopicIdPartition, list[AcquiredRange]]
    ) -> dict[TopicIdPartition, list[OffsetRange]]:
        """The ranges of a batch that are in the ledger."""
        return {
            partition: intersect(
                union(ranges), union(self.done.get(partition, []), self.rejected.get(partition, []))
            )
            for partition, ranges in batch.items()
        }

    def check_bound(self) -> None:
        """Raises `PipelineError` at twice the bound.

        Call it after redeliveries could empty the ledger: after a start it has the last batch, which
        decisions may have cut into many ranges.
        """
        if self.is_over_bound:
            raise PipelineError(
                f"The broker has not confirmed the acknowledgements of {self.range_count} ranges of records "
                "that are done. Check the broker, then start the query again: it goes on where it stopped."
            )

    def note_done(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange]) -> None:
        """These were emitted and are to be accepted."""
        self._note(self.done, partition, ranges)

    def note_rejected(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange]) -> None:
        """These were emitted and are to be rejected."""
        self._note(self.rejected, partition, ranges)

    def sort(self, partition: TopicIdPartition, acquired: Iterable[AcquiredRange]) -> Sorted:
        """Separates new ranges from those that are done."""
        others, reject = partition_acquired(acquired, self.rejected.get(partition, []))
        new, accept = partition_acquired(others, self.done.get(partition, []))
        return Sorted(new, accept, reject)

    def confirm(self, partition: TopicIdPartition, ranges: Iterable[OffsetRange]) -> None:
        """The broker has confirmed these."""
        confirmed = union(ranges)
        for of in (self.done, self.rejected):
            self._put(of, partition, subtract(of.get(partition, []), confirmed))

    def note_start_offset(self, partition: TopicIdPartition, start_offset: int) -> bool:
        """Removes ranges below the group's start offset; `UNKNOWN_OFFSET` if it has none (any more).

        Returns whether the start offset went back, which clears the partition.
        """
        was_reset = start_offset < self.start_offsets.get(partition, UNKNOWN_OFFSET)
        if was_reset:
            self.forget(partition)
        elif start_offset > 0:
            self.confirm(partition, [OffsetRange(0, start_offset - 1)])
        self.start_offsets[partition] = start_offset
        return was_reset

    def forget(self, partition: TopicIdPartition) -> None:
        """Clears the partition."""
        for of in (self.done, self.rejected, self.start_offsets):
            of.pop(partition, None)

    def _note(
        self,
        of: dict[TopicIdPartition, list[OffsetRange]],
        partition: TopicIdPartition,
        ranges: Iterable[OffsetRange],
    ) -> None:
        self._put(of, partition, union(of.get(partition, []), ranges))

    def _put(
        self,
        of: dict[TopicIdPartition, list[OffsetRange]],
        partition: TopicIdPartition,
        ranges: list[OffsetRange],
    ) -> None:
        if ranges:
            of[partition] = ranges
        else:
            of.pop(partition, None)

    def _everything(self) -> Iterator[tuple[TopicIdPartition, list[OffsetRange]]]:
        yield from self.done.items()
        yield from self.rejected.items()
