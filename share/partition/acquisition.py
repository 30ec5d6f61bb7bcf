"""Acquiring records: the choice of records for a fetch.

KIP-932 "In-flight records" and "Batching", KIP-1206 for the record limit, with Apache Kafka 4.3's throttling
of records near their delivery limit. First the plan names the reads, then the read batches show which records
exist. Available records come before new ones, lowest first. Reading the log is the caller's part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.share.partition.arrival import TimedPart, bring_in
from barnabas.share.partition.available_ranges import AvailableRanges
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE, InFlightBatch
from barnabas.share.partition.key_order import BatchKeys, KeyOrder
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.locks import archive
from barnabas.share.partition.ordered_acquisition import (
    PARTS_MAX,
    add_keys,
    follows_order,
    room_for_keys,
    select_in_order,
)
from barnabas.share.partition.producer_batches import ProducerBatches, base_offset_of, first_reaching
from barnabas.share.partition.selection import (
    EVERYTHING,
    NONE_SELECTED,
    UNBOUNDED_OFFSET,
    Selection,
    Span,
    select_available,
)
from barnabas.share.partition.taking import AcquireRequest, Taking
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


class Acquisition(NamedTuple):
    """Records acquired, as (first_offset, last_offset, delivery_count), and records found to be gone.

    The ranges are disjoint, ascending and name no control offset. `gaps`, if any, has to be recorded. The
    `batches` are those in which records go out for the first time.
    """

    acquired: list[tuple[int, int, int]]
    gaps: Decision | None
    batches: Sequence[InFlightBatch] = ()
    was_passed_over: bool = False
    """Whether no record goes to the client, because all that were found have been archived, or priorities
    have to choose again.
    """
    overtaking_count: int = 0
    """The acquired records that were preferred to an earlier available one, by their priorities."""


HasNoData = Callable[[int], bool]
"""Whether a producer batch, by its index among those read, holds nothing for a client to deliver."""


def never(_index: int) -> bool:
    """Every batch holds data."""
    return False


def plan(
    in_flight: InFlight, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode
) -> AcquirePlan:
    """The reads for `records_max` records; empty if no record can be acquired now."""
    reads: list[tuple[int, int]] = []
    last_offsets: list[int] = []
    if records_max <= 0 or in_flight.spso < 0 or not follows_order(in_flight, limits):
        return AcquirePlan(reads, last_offsets)
    selection = _select(in_flight, records_max, limits, acquire_mode, EVERYTHING)
    if in_flight.key_order is None and in_flight.available_from is not None:
        _note_selected(in_flight, selection, records_max)
    order = in_flight.key_order
    has_priorities = order is not None and order.priorities is not None
    reads_max = PARTS_MAX if has_priorities else READS_MAX
    control_runs = in_flight.control_runs
    for part in selection.parts:
        if not _add_read(
            reads, last_offsets, control_runs, part.first_offset, part.last_offset, reads_max=reads_max
        ):
            return AcquirePlan(reads, last_offsets)
    available_count = selection.record_count
    if has_priorities and selection.parts:
        is_alone = order is not None and order.alone is not None
        chosen = () if is_alone else [part[1:3] for part in selection.parts]
        return AcquirePlan(reads, last_offsets, chosen, available_count)
    wanted = _new_records_max(in_flight, records_max, limits, selection)
    if wanted <= 0:
        return AcquirePlan(reads, last_offsets, (), available_count)
    new_from = control_runs.next_data_offset(in_flight.speo if order is None else order.known_until)
    _add_read(reads, last_offsets, control_runs, new_from, UNBOUNDED_OFFSET, wanted)
    return AcquirePlan(reads, last_offsets, (), available_count, wanted, new_from)


def plan_look_ahead(in_flight: InFlight, limits: ShareLimits) -> AcquirePlan:
    """The read for more records to choose from, if the group has priorities and the window has room."""
    planned = AcquirePlan([], [])
    order, control_runs = in_flight.key_order, in_flight.control_runs
    if order is None or order.priorities is None or not order.free_count or in_flight.awaits_locks:
        return planned
    room = room_for_keys(in_flight, order, limits)
    if room > 0:
        first_offset = control_runs.next_data_offset(order.known_until)
        _add_read(*planned[:2], control_runs, first_offset, UNBOUNDED_OFFSET, room)
    return planned


def look_ahead(
    in_flight: InFlight,
    batches: ProducerBatches,
    keys: Sequence[BatchKeys],
    batch_size: int,
    limits: ShareLimits,
    aborted: Sequence[tuple[int, int]],
    timed: Sequence[TimedPart] | None,
) -> Acquisition:
    """Puts the records of the batches in flight that a look ahead has read; none is acquired."""
    order = in_flight.key_order
    assert order is not None
    gone = Decision()
    new: list[InFlightBatch] = []
    if timed is not None:
        new += bring_in(in_flight, gone, batches, timed, batch_size, limits)
    new += add_keys(in_flight, order, gone, keys, aborted, batch_size)
    return Acquisition([], _to_record(gone), new)


def acquire(
    in_flight: InFlight,
    planned: AcquirePlan,
    request: AcquireRequest,
    batches: ProducerBatches,
    aborted: Sequence[tuple[int, int]] = (),
    unreadable: Sequence[tuple[int, int]] = (),
    has_no_data: HasNoData = never,
    keys: Sequence[BatchKeys] = (),
    timed: Sequence[TimedPart] | None = None,
) -> Acquisition:
    """Acquires from the batches that were read.

    `batches` are (base_offset, last_offset) of the producer batches, ascending. `aborted` are those of them
    that belong to aborted transactions, `unreadable` those with malformed records. Both are archived instead
    of delivered, and so is a range without data. `keys` and `timed`: see `SharePartition.acquire`.
    """
    if request.records_max <= 0 or not batches:
        return Acquisition([], None)
    spans = _spans(planned, batches)
    if not spans:
        return Acquisition([], None)
    gone = Decision()
    taking = Taking(in_flight, batches, request)
    order = in_flight.key_order
    looked_until = in_flight.speo if order is None else order.known_until
    if in_flight.available_from is not None or order is not None:
        _archive_gaps(in_flight, gone, planned, batches)
    if timed is not None:
        taking.batches += _bring_in(in_flight, gone, spans, batches, timed, request)
    if order is None:
        _take(in_flight, taking, request, spans, with_new=timed is None)
    else:
        if planned.chosen:  # A read passes over compacted records, and may reach new ones.
            keys = [one for one in keys if one.base_offset < looked_until]
        taking.batches += add_keys(in_flight, order, gone, keys, aborted, request.batch_size)
        if _has_to_choose_again(planned, order, gone, looked_until):
            return Acquisition([], _to_record(gone), taking.batches, order.known_until == looked_until)
        _take_in_order(in_flight, order, taking, request, spans)
    ranges = taking.ranges
    is_any_taken = bool(ranges)
    for gone_batches, cause in ((aborted, Cause.TRANSACTION_ABORTED), (unreadable, Cause.GAP)):
        if gone_batches:
            ranges = _archive_acquired(in_flight, gone, ranges, gone_batches, cause)
    if order is None:
        ranges = _for_client(in_flight.control_runs, ranges)
        ranges = _with_data(in_flight, gone, ranges, batches, has_no_data)
    has_looked_on = looked_until != (in_flight.speo if order is None else order.known_until)
    was_passed_over = not ranges and (is_any_taken or not (gone.is_empty or has_looked_on))
    return Acquisition(ranges, _to_record(gone), taking.batches, was_passed_over, taking.overtaking_count)


def _to_record(gone: Decision) -> Decision | None:
    return None if gone.is_empty else gone


def _bring_in(
    in_flight: InFlight,
    gone: Decision,
    spans: Sequence[Span],
    batches: ProducerBatches,
    timed: Sequence[TimedPart],
    request: AcquireRequest,
) -> list[InFlightBatch]:
    """The new records come in flight before the selection, if the first of them was read."""
    first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
    new = batches if spans[-1][0] <= first_offset <= spans[-1][1] else ()
    return bring_in(in_flight, gone, new, timed, request.batch_size, request.limits)


def _take(
    in_flight: InFlight, taking: Taking, request: AcquireRequest, spans: Sequence[Span], *, with_new: bool
) -> None:
    """Takes available records, and with `with_new` new ones behind them."""
    records_max, limits = request.records_max, request.limits
    selection = _select(in_flight, records_max, limits, request.acquire_mode, spans)
    taking.take_parts(selection.parts)
    if not with_new:
        return
    wanted = _new_records_max(in_flight, records_max, limits, selection)
    first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
    if wanted > 0 and spans[-1][0] <= first_offset <= spans[-1][1]:
        taking.take_new(first_offset, spans[-1][1], wanted)


def _has_to_choose_again(planned: AcquirePlan, order: KeyOrder, gone: Decision, looked_until: int) -> bool:
    """Whether priorities may choose other records now: more urgent ones are known, or will be free when it is
    recorded that others are gone.
    """
    if order.priorities is None or order.alone is not None:
        return False
    return not gone.is_empty or (bool(planned.chosen) and order.known_until != looked_until)


def _take_in_order(
    in_flight: InFlight, order: KeyOrder, taking: Taking, request: AcquireRequest, spans: Sequence[Span]
) -> None:
    """Takes available records. Their batches have data, because `add_keys` archives those without."""
    selection = select_in_order(
        in_flight, order, request.records_max, request.limits, request.acquire_mode, spans
    )
    taking.take_in_order(selection.parts, order)


def _with_data(
    in_flight: InFlight,
    gone: Decision,
    ranges: list[tuple[int, int, int]],
    batches: ProducerBatches,
    has_no_data: HasNoData,
) -> list[tuple[int, int, int]]:
    """Archives the ranges in which no batch has data; returns the others."""
    with_data: list[tuple[int, int, int]] = []
    for one in ranges:
        if _is_empty(one, batches, has_no_data):
            archive(in_flight, gone, one[0], one[1], ACQUIRED, Cause.GAP)
        else:
            with_data.append(one)
    return with_data


def _select(
    in_flight: InFlight, records_max: int, limits: ShareLimits, mode: AcquireMode, spans: Sequence[Span]
) -> Selection:
    if in_flight.key_order is not None:
        return select_in_order(in_flight, in_flight.key_order, records_max, limits, mode, spans)
    if in_flight.available_from is None:
        return NONE_SELECTED
    return select_available(in_flight, records_max, limits, mode, spans)


def _note_selected(in_flight: InFlight, selection: Selection, records_max: int) -> None:
    """Keeps the bounds of the available records that a complete look has found."""
    parts = selection.parts
    in_flight.available_from = parts[0].first_offset if parts else None
    is_complete = selection.record_count < records_max and not selection.is_closed
    if parts and is_complete:
        in_flight.available_to = parts[-1].last_offset
    if in_flight.has_delayed:
        if is_complete:
            in_flight.available_ranges = AvailableRanges((one.first_offset, one.last_offset) for one in parts)
        elif parts:
            in_flight.available_ranges.forget_below(parts[0].first_offset)


def _new_records_max(in_flight: InFlight, records_max: int, limits: ShareLimits, selection: Selection) -> int:
    """How many new records may follow the selected ones: the in-flight window bounds new records only."""
    if selection.is_closed:
        return 0
    order = in_flight.key_order
    if order is None:
        room = limits.record_locks_max - in_flight.window_count()
    else:
        room = room_for_keys(in_flight, order, limits)
        if order.priorities is not None:
            return room
    return min(records_max - selection.record_count, room)


def _add_read(
    reads: list[tuple[int, int]],
    last_offsets: list[int],
    control_runs: ControlRuns,
    first_offset: int,
    last_offset: int,
    count: int = 0,
    *,
    reads_max: int = READS_MAX,
) -> bool:
    """Adds a range of `count` records, or all in it, to the last read or as one more; whether it fits."""
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


def _spans(planned: AcquirePlan, batches: ProducerBatches) -> list[Span]:
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


def _archive_gaps(
    in_flight: InFlight, decision: Decision, planned: AcquirePlan, batches: ProducerBatches
) -> None:
    """Archives available records that a read from their offset on did not find: compaction took them."""
    for first_offset, _ in planned.reads:
        index = first_reaching(batches, first_offset)
        if index < len(batches) and batches[index][0] > first_offset:
            last_offset = in_flight.control_runs.previous_data_offset(batches[index][0] - 1)
            archive(in_flight, decision, first_offset, last_offset, AVAILABLE, Cause.GAP)


def _archive_acquired(
    in_flight: InFlight,
    decision: Decision,
    ranges: list[tuple[int, int, int]],
    gone: Sequence[tuple[int, int]],
    cause: Cause,
) -> list[tuple[int, int, int]]:
    """Archives acquired records of batches that no member gets; returns the remaining ranges."""
    for base_offset, last_offset in gone:
        remaining: list[tuple[int, int, int]] = []
        for first, last, delivery_count in ranges:
            low, high = max(first, base_offset), min(last, last_offset)
            if low > high:
                remaining.append((first, last, delivery_count))
                continue
            archive(in_flight, decision, low, high, ACQUIRED, cause)
            if first < low:
                remaining.append((first, low - 1, delivery_count))
            if high < last:
                remaining.append((high + 1, last, delivery_count))
        ranges = remaining
    return ranges


def _is_empty(acquired: tuple[int, int, int], batches: ProducerBatches, has_no_data: HasNoData) -> bool:
    """Whether a range holds batches, and none of them has data.

    librdkafka acknowledges such offsets only beside records, so that a range of them would stay acquired
    until its lock ends, and come back until the delivery limit. It costs a look at one batch, where that has
    data.
    """
    first_offset, last_offset, _ = acquired
    first_index = index = first_reaching(batches, first_offset)
    while index < len(batches) and batches[index][0] <= last_offset:
        if not has_no_data(index):
            return False
        index += 1
    return index > first_index


def _for_client(control_runs: ControlRuns, ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    if not len(control_runs):
        return ranges
    return [
        (first, last, delivery_count)
        for first_offset, last_offset, delivery_count in ranges
        for first, last in control_runs.data_ranges(first_offset, last_offset)
    ]
