"""Acquisition in an order of keys (`share.order=key`), of priorities (`share.priority.header`), or of both.

New records come in flight as available ones when their keys and priorities have become known, and the lowest,
or the most urgent, of those whose keys are free are delivered. So records that wait for their key occupy the
in-flight window, which bounds the memory for keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

from barnabas.protocol.delivery_state import Cause
from barnabas.share.partition.acquire_plan import (
    NOTHING_ACQUIRED,
    READS_MAX,
    AcquirePlan,
    Acquisition,
    FoundBatches,
    acquisition_of,
    add_read,
    spans_of,
    to_record,
)
from barnabas.share.partition.acquisition_builder import AcquireRequest, AcquisitionBuilder
from barnabas.share.partition.arrival import TimedPart, admit, admit_read, put_in_flight
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE, InFlightBatch, InFlightRun
from barnabas.share.partition.key_order import BatchKeys, KeyOrder, follows, order_of
from barnabas.share.partition.limits import AcquireMode, ShareLimits, throttle_count_min
from barnabas.share.partition.locks import archive
from barnabas.share.partition.producer_batches import ProducerBatches
from barnabas.share.partition.selection import (
    EVERYTHING,
    UNBOUNDED_OFFSET,
    AvailablePart,
    Selection,
    Span,
    available_parts,
    select_parts,
)
from barnabas.share.partition.undelivered_records import archive_gaps, archive_undelivered
from barnabas.share.partition.unread_batches import forget_unread

PARTS_MAX: Final = 32
"""The most ranges of neighbouring offsets in one delivery. Each range costs as much as dozens of records that
follow each other, so few and long ones are faster for brokers and clients. The next fetch gets the others.
"""

_delivery_count_of = attrgetter("delivery_count")
_first_offset_of = attrgetter("first_offset")


def follows_order(in_flight: InFlight, limits: ShareLimits) -> bool:
    """Whether records may be acquired. After a change of `share.order`, or of the name of the header with
    priorities, none may until all locks have ended, because the locks were given in the earlier order, and
    until the ends of records are recorded.
    """
    order = in_flight.key_order
    if follows(order, limits):
        in_flight.awaits_locks = False
        if order is not None and order.priorities is not None:
            order.priorities.overtaken_max = limits.priority.overtaken_max
        return True
    in_flight.awaits_locks = any(
        run.state is ACQUIRED or run.keeps_key for batch in in_flight.batches for run in batch.runs
    )
    if in_flight.awaits_locks:
        return False
    in_flight.key_order = order_of(in_flight.spso, limits)
    if in_flight.key_order is not None:
        forget_unread(in_flight)
    else:
        in_flight.note_available(in_flight.spso, in_flight.speo - 1)
    return True


def plan_in_order(
    in_flight: InFlight, order: KeyOrder, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode
) -> AcquirePlan:
    """The reads for `records_max` records, 1 at least; see `acquisition.plan`.

    With priorities, a plan for available records has no new ones: a look ahead has read those before.
    """
    reads: list[tuple[int, int]] = []
    last_offsets: list[int] = []
    planned = AcquirePlan(reads, last_offsets)
    has_priorities = order.priorities is not None
    reads_max = PARTS_MAX if has_priorities else READS_MAX
    selection = select_in_order(in_flight, order, records_max, limits, acquire_mode, EVERYTHING)
    control_runs = in_flight.control_runs
    for part in selection.parts:
        if not add_read(planned, control_runs, part.first_offset, part.last_offset, reads_max=reads_max):
            return planned
    available_count = selection.record_count
    if has_priorities and selection.parts:
        chosen = [part[1:3] for part in selection.parts] if order.alone is None else ()
        return AcquirePlan(reads, last_offsets, chosen, available_count)
    wanted = 0 if selection.is_closed else room_for_keys(in_flight, order, limits)
    if not has_priorities:
        wanted = min(records_max - available_count, wanted)
    if wanted <= 0:
        return AcquirePlan(reads, last_offsets, (), available_count)
    new_from = control_runs.next_data_offset(order.known_until)
    add_read(planned, control_runs, new_from, UNBOUNDED_OFFSET, wanted)
    return AcquirePlan(reads, last_offsets, (), available_count, wanted, new_from)


def acquire_in_order(
    in_flight: InFlight,
    order: KeyOrder,
    planned: AcquirePlan,
    request: AcquireRequest,
    found: FoundBatches,
) -> Acquisition:
    """Acquires from the batches that were read, one at least; see `acquisition.acquire`. Their data needs no
    look, because `add_keys` archives the batches without.
    """
    batches = found.batches
    spans = spans_of(planned, batches)
    if not spans:
        return NOTHING_ACQUIRED
    gone = Decision()
    builder = AcquisitionBuilder(in_flight, batches, request)
    looked_until = order.known_until
    archive_gaps(in_flight, gone, planned, batches)
    if found.timed is not None:
        builder.batches += admit_read(in_flight, gone, spans, batches, found.timed, request)
    keys = found.keys
    if planned.chosen:  # A read passes over compacted records, and may reach new ones.
        keys = [batch for batch in keys if batch.base_offset < looked_until]
    builder.batches += add_keys(in_flight, order, gone, keys, found.aborted, request.batch_size)
    has_looked_on = order.known_until != looked_until
    if _has_to_choose_again(planned, order, gone, has_looked_on=has_looked_on):
        return Acquisition([], to_record(gone), builder.batches, not has_looked_on)
    selection = select_in_order(
        in_flight, order, request.records_max, request.limits, request.acquire_mode, spans
    )
    builder.acquire_in_order(selection.parts, order)
    ranges = archive_undelivered(in_flight, gone, builder.ranges, found)
    return acquisition_of(builder, gone, ranges, has_looked_on=has_looked_on)


def _has_to_choose_again(
    planned: AcquirePlan, order: KeyOrder, gone: Decision, *, has_looked_on: bool
) -> bool:
    """Whether priorities may choose other records now: more urgent ones are known, or will be free when it is
    recorded that others are gone.
    """
    if order.priorities is None or order.alone is not None:
        return False
    return not gone.is_empty or (bool(planned.chosen) and has_looked_on)


def plan_look_ahead(in_flight: InFlight, limits: ShareLimits) -> AcquirePlan:
    """The read for more records to choose from, if the group has priorities and the window has room."""
    planned = AcquirePlan([], [])
    order, control_runs = in_flight.key_order, in_flight.control_runs
    if order is None or order.priorities is None or not order.free_count or in_flight.awaits_locks:
        return planned
    room = room_for_keys(in_flight, order, limits)
    if room > 0:
        first_offset = control_runs.next_data_offset(order.known_until)
        add_read(planned, control_runs, first_offset, UNBOUNDED_OFFSET, room)
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
        new += admit(in_flight, gone, batches, timed, batch_size, limits)
    new += add_keys(in_flight, order, gone, keys, aborted, batch_size)
    return Acquisition([], to_record(gone), new)


def select_in_order(
    in_flight: InFlight,
    order: KeyOrder,
    records_max: int,
    limits: ShareLimits,
    mode: AcquireMode,
    spans: Sequence[Span],
) -> Selection:
    """The available records within the spans that may be delivered together: at most `records_max`, the
    lowest or the most urgent ones, or a batch that is delivered alone.
    """
    if order.alone is not None:
        alone = _parts_alone(in_flight, order.alone, spans)
        is_limited = mode is AcquireMode.RECORD_LIMIT
        return select_parts(in_flight, alone, records_max, limits, is_limited=is_limited)
    offsets = order.next_records(records_max, spans)
    if order.priorities is not None:
        return _select_by_urgency(in_flight, order, offsets, limits)
    parts_of_batches = list(_parts(in_flight, offsets, PARTS_MAX))
    parts = list(chain.from_iterable(parts_of_batches))
    if max(map(_delivery_count_of, parts), default=0) < throttle_count_min(limits.delivery_count_max):
        return Selection(parts, len(offsets), is_closed=len(parts) == PARTS_MAX)
    return select_parts(in_flight, parts_of_batches, records_max, limits, is_limited=True)


def _select_by_urgency(
    in_flight: InFlight, order: KeyOrder, by_urgency: Sequence[int], limits: ShareLimits
) -> Selection:
    """As many of the records, from the first one on, as lie in `PARTS_MAX` parts; the parts are ascending.

    A batch with records near the delivery limit comes by its most urgent record. Those of its records that
    are delivered together are chosen as without priorities. The later records of a key wait for the next
    delivery then, because the first one may be in a batch that is left out.
    """
    by_urgency, parts_of_batches = _few_parts(in_flight, by_urgency)
    parts = list(chain.from_iterable(parts_of_batches))
    if max(map(_delivery_count_of, parts), default=0) < throttle_count_min(limits.delivery_count_max):
        return Selection(parts, len(by_urgency), is_closed=len(parts) == PARTS_MAX)
    if order.run_max > 1:
        by_urgency, parts_of_batches = _few_parts(in_flight, order.first_of_keys(by_urgency))
    rank = {offset: index for index, offset in enumerate(by_urgency)}
    parts_of_batches.sort(
        key=lambda parts: min(rank[offset] for part in parts for offset in range(part[1], part[2] + 1))
    )
    selection = select_parts(in_flight, parts_of_batches, len(by_urgency), limits, is_limited=True)
    return selection._replace(parts=sorted(selection.parts, key=_first_offset_of))


def _few_parts(
    in_flight: InFlight, by_urgency: Sequence[int]
) -> tuple[Sequence[int], list[list[AvailablePart]]]:
    """As many of the records, from the first one on, as lie in `PARTS_MAX` parts, and these parts."""
    parts_of_batches = list(_parts(in_flight, sorted(by_urgency), PARTS_MAX + 1))
    if sum(map(len, parts_of_batches)) > PARTS_MAX:
        by_urgency = _in_few_parts(in_flight, by_urgency)
        parts_of_batches = list(_parts(in_flight, sorted(by_urgency), PARTS_MAX))
    return by_urgency, parts_of_batches


def _in_few_parts(in_flight: InFlight, by_urgency: Sequence[int]) -> Sequence[int]:
    """As many records, from the first one on, as lie in `PARTS_MAX` parts."""
    run_of: dict[int, InFlightRun] = {}
    part_count = 0
    for index, offset in enumerate(by_urgency):
        _, run = in_flight.run_of(offset)
        part_count += 1 - (run_of.get(offset - 1) is run) - (run_of.get(offset + 1) is run)
        if part_count > PARTS_MAX:
            return by_urgency[:index]
        run_of[offset] = run
    return by_urgency


def room_for_keys(in_flight: InFlight, order: KeyOrder, limits: ShareLimits) -> int:
    """The number of records whose keys may still be added; 0 or less if there is no room."""
    if order.alone is not None:
        if in_flight.spso <= order.alone[1]:
            return 0
        order.alone = None
    if order.waits_until_empty and not order.is_empty:
        return 0
    if in_flight.has_delayed:
        window = _window_beside_delayed(in_flight, order)
    else:
        window = in_flight.control_runs.data_count(in_flight.spso, order.known_until - 1)
    room = limits.record_locks_max - window
    if order.priorities is None:
        return room
    return min(room, limits.priority.window_records - order.free_count)


def _window_beside_delayed(in_flight: InFlight, order: KeyOrder) -> int:
    """The part of the in-flight window whose keys are known. While delayed records lie in the window, the
    keys of all others in it are read after a restart: their number was bounded when they came in flight.
    """
    return in_flight.window_count() if order.known_until >= in_flight.speo else 0


def add_keys(
    in_flight: InFlight,
    order: KeyOrder,
    gone: Decision,
    batches: Sequence[BatchKeys],
    aborted: Sequence[tuple[int, int]],
    batch_size: int,
) -> list[InFlightBatch]:
    """Adds the batches that were read from `known_until` on, up to one that must be delivered alone.

    Records of aborted batches, and offsets without a record, are archived; `gone` has that, to be recorded.
    So are the available records of earlier batches from which compaction has removed them meanwhile. Returns
    the new batches in flight.
    """
    for batch in batches:
        if batch.last_offset < order.known_until:
            _archive_holes(in_flight, gone, batch)
    found = [batch for batch in batches if batch.last_offset >= order.known_until]
    added = found[: _addable_count(order, found)]
    order.waits_until_empty = len(added) < len(found)
    new = put_in_flight(in_flight, [(batch.base_offset, batch.last_offset) for batch in added], batch_size)
    without_effect = frozenset(aborted)
    for batch in added:
        _archive(in_flight, gone, order.known_until, batch.base_offset - 1, Cause.GAP)
        if batch[:2] in without_effect:
            _archive(in_flight, gone, batch.base_offset, batch.last_offset, Cause.TRANSACTION_ABORTED)
        elif batch.keys is None:
            order.alone = (max(batch.base_offset, in_flight.spso), batch.last_offset)
        else:
            new_part = batch
            if batch.base_offset < order.known_until:  # Reading had stopped at a record that was not due.
                new_part = batch.between(order.known_until, batch.last_offset)
            _add_batch(in_flight, order, gone, new_part)
        order.known_until = batch.last_offset + 1
    return new


def _addable_count(order: KeyOrder, batches: Sequence[BatchKeys]) -> int:
    """A batch without known keys comes alone, and only if no record before it is unfinished."""
    for index, batch in enumerate(batches):
        if batch.keys is None:
            return index or int(order.is_empty)
    return len(batches)


def _archive(in_flight: InFlight, gone: Decision, first_offset: int, last_offset: int, cause: Cause) -> None:
    """Archives the available records of the range, which may begin with control offsets."""
    first_offset = in_flight.control_runs.next_data_offset(max(first_offset, in_flight.spso))
    if first_offset <= last_offset:
        last_offset = in_flight.control_runs.previous_data_offset(last_offset)
        archive(in_flight, gone, first_offset, last_offset, AVAILABLE, cause)


def _add_batch(in_flight: InFlight, order: KeyOrder, gone: Decision, batch: BatchKeys) -> None:
    base_offset, last_offset, keys, priorities = batch
    assert keys is not None
    deltas, hashes = keys
    if len(deltas) == last_offset - base_offset + 1:
        _, run = in_flight.run_of(max(base_offset, in_flight.spso))
        is_whole = run.first_offset <= base_offset and last_offset <= run.last_offset
        if run.state is AVAILABLE and run.condition is None and is_whole:
            order.add(range(base_offset, last_offset + 1), hashes, priorities)
            return
    offsets = [base_offset + delta for delta in deltas]
    _archive_holes(in_flight, gone, batch)
    for _, run in in_flight.runs_between(base_offset, last_offset):
        if run.state is AVAILABLE or run.keeps_key:
            first = bisect_left(offsets, run.first_offset)
            end = bisect_right(offsets, run.last_offset, first)
            order.add(offsets[first:end], hashes[first:end], priorities[first:end])
            if run.waits:
                order.hold_back(run.first_offset, min(run.last_offset, last_offset))
            elif run.keeps_key:
                order.keep(run.first_offset, min(run.last_offset, last_offset))


def _archive_holes(in_flight: InFlight, gone: Decision, batch: BatchKeys) -> None:
    """Archives the available offsets of a batch that have no record, because compaction has removed it."""
    base_offset, last_offset, keys, _ = batch
    if keys is None or len(keys.offset_deltas) > last_offset - base_offset:
        return
    previous = base_offset - 1
    for offset in (*(base_offset + delta for delta in keys.offset_deltas), last_offset + 1):
        if offset > previous + 1:
            _archive(in_flight, gone, previous + 1, offset - 1, Cause.GAP)
        previous = offset


def _parts(in_flight: InFlight, offsets: Sequence[int], parts_max: int) -> Iterator[list[AvailablePart]]:
    """Available records, ascending, as parts of the runs that hold them, for each in-flight batch; the first
    `parts_max` parts.
    """
    position, count = 0, len(offsets)
    parts_left = parts_max
    while position < count and parts_left:
        batch = in_flight.batches[in_flight.batch_index(offsets[position])]
        index = batch.run_index(offsets[position])
        parts: list[AvailablePart] = []
        while position < count and parts_left and offsets[position] <= batch.last_offset:
            first_offset = offsets[position]
            while batch.runs[index].last_offset < first_offset:
                index += 1
            run = batch.runs[index]
            assert run.state is AVAILABLE and not run.waits, (run.state, first_offset)
            position = _end_of_stretch(offsets, position, bisect_right(offsets, run.last_offset, position))
            parts.append(AvailablePart(batch, first_offset, offsets[position - 1], run.delivery_count))
            parts_left -= 1
        yield parts


def _end_of_stretch(offsets: Sequence[int], start: int, end: int) -> int:
    """The index behind the ascending offsets from `start` on that follow each other, at most `end`."""
    low, high, ahead = start + 1, end, offsets[start] - start
    if offsets[end - 1] - end + 1 == ahead:
        return end
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] - middle == ahead:
            low = middle + 1
        else:
            high = middle
    return low


def _parts_alone(
    in_flight: InFlight, alone: tuple[int, int], spans: Sequence[Span]
) -> Iterator[list[AvailablePart]]:
    """The available records of a batch that is delivered alone, if no member holds another record of it, none
    of them waits, and all that are given up are recorded as such.
    """
    runs = list(in_flight.runs_between(*alone))
    if any(run.keeps_others_back for _, run in runs):
        return
    inside = [(max(first, alone[0]), min(last, alone[1])) for first, last in spans]
    inside = [(first, last) for first, last in inside if first <= last]
    for batch in dict.fromkeys(batch for batch, _ in runs):
        parts = available_parts(in_flight, batch, inside)
        if parts:
            yield parts
