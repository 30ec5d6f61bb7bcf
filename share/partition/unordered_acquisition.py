"""Acquisition by offset, in groups without an order of records: available records come before new ones, the
lowest ones first. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.delivery_state import Cause
from barnabas.share.partition.acquire_plan import (
    NOTHING_ACQUIRED,
    AcquirePlan,
    Acquisition,
    FoundBatches,
    HasNoData,
    acquisition_of,
    add_read,
    spans_of,
)
from barnabas.share.partition.acquisition_builder import AcquireRequest, AcquisitionBuilder
from barnabas.share.partition.arrival import admit_read
from barnabas.share.partition.available_ranges import AvailableRanges
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.locks import archive
from barnabas.share.partition.producer_batches import ProducerBatches, first_reaching
from barnabas.share.partition.selection import (
    EVERYTHING,
    NONE_SELECTED,
    UNBOUNDED_OFFSET,
    Selection,
    Span,
    select_available,
)
from barnabas.share.partition.undelivered_records import archive_gaps, archive_undelivered
from barnabas.storage.format.control_runs import ControlRuns


def plan_by_offset(
    in_flight: InFlight, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode
) -> AcquirePlan:
    """The reads for `records_max` records, 1 at least; see `acquisition.plan`."""
    reads: list[tuple[int, int]] = []
    last_offsets: list[int] = []
    planned = AcquirePlan(reads, last_offsets)
    selection = NONE_SELECTED
    if in_flight.available_from is not None:
        selection = select_available(in_flight, records_max, limits, acquire_mode, EVERYTHING)
        _note_selected(in_flight, selection, records_max)
    control_runs = in_flight.control_runs
    for part in selection.parts:
        if not add_read(planned, control_runs, part.first_offset, part.last_offset):
            return planned
    wanted = _new_records_max(in_flight, records_max, limits, selection)
    if wanted <= 0:
        return AcquirePlan(reads, last_offsets, (), selection.record_count)
    new_from = control_runs.next_data_offset(in_flight.speo)
    add_read(planned, control_runs, new_from, UNBOUNDED_OFFSET, wanted)
    return AcquirePlan(reads, last_offsets, (), selection.record_count, wanted, new_from)


def acquire_by_offset(
    in_flight: InFlight, planned: AcquirePlan, request: AcquireRequest, found: FoundBatches
) -> Acquisition:
    """Acquires from the batches that were read, one at least; see `acquisition.acquire`."""
    batches = found.batches
    spans = spans_of(planned, batches)
    if not spans:
        return NOTHING_ACQUIRED
    gone = Decision()
    builder = AcquisitionBuilder(in_flight, batches, request)
    looked_until = in_flight.speo
    if in_flight.available_from is not None:
        archive_gaps(in_flight, gone, planned, batches)
    if found.timed is None:
        selection = _take_available(in_flight, builder, request, spans)
        _take_new(in_flight, builder, request, spans, selection)
    else:
        builder.batches += admit_read(in_flight, gone, spans, batches, found.timed, request)
        _take_available(in_flight, builder, request, spans)
    ranges = archive_undelivered(in_flight, gone, builder.ranges, found)
    ranges = _for_client(in_flight.control_runs, ranges)
    ranges = _with_data(in_flight, gone, ranges, batches, found.has_no_data)
    return acquisition_of(builder, gone, ranges, has_looked_on=in_flight.speo != looked_until)


def _take_available(
    in_flight: InFlight, builder: AcquisitionBuilder, request: AcquireRequest, spans: Sequence[Span]
) -> Selection:
    if in_flight.available_from is None:
        return NONE_SELECTED
    selection = select_available(in_flight, request.records_max, request.limits, request.acquire_mode, spans)
    builder.acquire_parts(selection.parts)
    return selection


def _take_new(
    in_flight: InFlight,
    builder: AcquisitionBuilder,
    request: AcquireRequest,
    spans: Sequence[Span],
    selection: Selection,
) -> None:
    """Takes new records behind the selected ones, if the first of them was read."""
    wanted = _new_records_max(in_flight, request.records_max, request.limits, selection)
    first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
    if wanted > 0 and spans[-1][0] <= first_offset <= spans[-1][1]:
        builder.acquire_new(first_offset, spans[-1][1], wanted)


def _new_records_max(in_flight: InFlight, records_max: int, limits: ShareLimits, selection: Selection) -> int:
    """How many new records may follow the selected ones: the in-flight window bounds new records only."""
    if selection.is_closed:
        return 0
    return min(records_max - selection.record_count, limits.record_locks_max - in_flight.window_count())


def _note_selected(in_flight: InFlight, selection: Selection, records_max: int) -> None:
    """Keeps the bounds of the available records that a complete look has found."""
    parts = selection.parts
    in_flight.available_from = parts[0].first_offset if parts else None
    is_complete = selection.record_count < records_max and not selection.is_closed
    if parts and is_complete:
        in_flight.available_to = parts[-1].last_offset
    if in_flight.has_delayed:
        if is_complete:
            in_flight.available_ranges = AvailableRanges(
                (part.first_offset, part.last_offset) for part in parts
            )
        elif parts:
            in_flight.available_ranges.forget_below(parts[0].first_offset)


def _with_data(
    in_flight: InFlight,
    gone: Decision,
    ranges: list[tuple[int, int, int]],
    batches: ProducerBatches,
    has_no_data: HasNoData,
) -> list[tuple[int, int, int]]:
    """Archives the ranges in which no batch has data; returns the others."""
    with_data: list[tuple[int, int, int]] = []
    for acquired in ranges:
        if _is_empty(acquired, batches, has_no_data):
            archive(in_flight, gone, acquired[0], acquired[1], ACQUIRED, Cause.GAP)
        else:
            with_data.append(acquired)
    return with_data


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
