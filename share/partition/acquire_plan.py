"""The plan of an acquisition, the batches that its reads find, and the result. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.share.partition.acquisition_builder import AcquisitionBuilder
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight_batch import InFlightBatch
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.producer_batches import ProducerBatches, base_offset_of, first_reaching
from barnabas.share.partition.selection import UNBOUNDED_OFFSET, Span
from barnabas.storage.format.control_runs import ControlRuns

READS_MAX = 16
"""Reads in a plan. Available records that lie too scattered for it wait for the next fetch. With priorities
there is a read for each part instead, so that the most urgent records do not wait."""

READ_GAP_MAX = 32
"""Records skipped within one read, instead of another read of the log."""


class AcquirePlan(NamedTuple):
    """The reads before an acquisition.

    `reads` is a list of (first_offset, records_max): the producer batches that overlap the `records_max` data
    offsets from `first_offset` on, or the next existing one; more batches do no harm. They are done in order
    and may end after any of them; a batch that two reads share is read once. `last_offsets` are where the
    reads are meant to end, inclusive. With priorities, `chosen` has the ranges of the records to acquire,
    both ends inclusive: they are the most urgent ones, so a fetch with too few bytes for all of them must not
    simply take the first ones. The reads have `available_count` available records, and `new_count` new ones
    from `new_from` on.
    """

    reads: list[tuple[int, int]]
    last_offsets: list[int]
    chosen: Sequence[Span] = ()
    available_count: int = 0
    new_count: int = 0
    new_from: int = 0

    def chosen_count(self, last_offset: int = UNBOUNDED_OFFSET) -> int:
        """The number of chosen records up to an offset, inclusive."""
        return sum(max(min(last, last_offset) - first + 1, 0) for first, last in self.chosen)


HasNoData = Callable[[int], bool]
"""Whether a producer batch, by its index among those read, holds nothing for a client to deliver."""


def never(_index: int) -> bool:
    """Every batch holds data."""
    return False


class FoundBatches(NamedTuple):
    """The producer batches that the reads of a plan have found; see `SharePartition.acquire`."""

    batches: ProducerBatches
    aborted: Sequence[tuple[int, int]]
    unreadable: Sequence[tuple[int, int]]
    has_no_data: HasNoData
    keys: Sequence[BatchKeys]
    timed: Sequence[TimedPart] | None


class Acquisition(NamedTuple):
    """Records acquired, as (first_offset, last_offset, delivery_count), and records found to be gone.

    The ranges are disjoint, ascending and name no control offset. `gaps`, if any, has to be recorded. The
    `batches` are those in which records go out for the first time.
    """

    acquired: list[tuple[int, int, int]]
    gaps: Decision | None
    batches: Sequence[InFlightBatch] = ()
    more_may_follow: bool = False
    """Whether the next acquisition may get records immediately, although this one got none. All the records
    that this one found have been archived, or priorities have to choose again. It is not set if this
    acquisition has only looked at new records: `SharePartition.looked_until` has moved then.
    """
    overtaking_count: int = 0
    """The acquired records that were preferred to an earlier available one, by their priorities."""


NOTHING_ACQUIRED = Acquisition([], None)


def add_read(
    planned: AcquirePlan,
    control_runs: ControlRuns,
    first_offset: int,
    last_offset: int,
    count: int = 0,
    *,
    reads_max: int = READS_MAX,
) -> bool:
    """Adds a range of `count` records, or all in it, to the last read or as one more; whether it fits."""
    reads, last_offsets = planned.reads, planned.last_offsets
    count = count or control_runs.data_count(first_offset, last_offset)
    if reads:
        passed_over = control_runs.data_count(last_offsets[-1] + 1, first_offset - 1)
        if passed_over <= READ_GAP_MAX:
            reads[-1] = (reads[-1][0], reads[-1][1] + passed_over + count)
            last_offsets[-1] = last_offset
            return True
        if len(reads) == reads_max:
            return False
    reads.append((first_offset, count))
    last_offsets.append(last_offset)
    return True


def spans_of(planned: AcquirePlan, batches: ProducerBatches) -> list[Span]:
    """The offsets that the reads have covered, holes between their batches included; ascending, disjoint."""
    spans: list[Span] = []
    for (first_offset, _), planned_last_offset in zip(planned.reads, planned.last_offsets, strict=True):
        first_index = first_reaching(batches, first_offset)
        if first_index == len(batches):
            break
        index = len(batches) - 1
        if planned_last_offset < batches[index][0]:
            index = max(first_index, bisect_right(batches, planned_last_offset, key=base_offset_of) - 1)
        if spans and first_offset <= spans[-1][1]:
            spans[-1] = (spans[-1][0], batches[index][1])
        else:
            spans.append((first_offset, batches[index][1]))
    return spans


def acquisition_of(
    builder: AcquisitionBuilder, gone: Decision, ranges: list[tuple[int, int, int]], *, has_looked_on: bool
) -> Acquisition:
    """The result: `ranges` are left of those taken; `has_looked_on` if records were looked at for the first
    time.
    """
    more_may_follow = not ranges and (bool(builder.ranges) or not (gone.is_empty or has_looked_on))
    return Acquisition(ranges, to_record(gone), builder.batches, more_may_follow, builder.overtaking_count)


def to_record(gone: Decision) -> Decision | None:
    return None if gone.is_empty else gone
