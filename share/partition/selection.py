"""Selection of available records for a redelivery.

KIP-932 "Delivery count and poison messages", as in Apache Kafka 4.3: a record that has failed often is
delivered together with fewer and fewer others, and alone on its last delivery, so that it cannot affect good
records. Nothing is changed here: a plan and an acquisition select the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import AVAILABLE, InFlightBatch, UnreadBatch
from barnabas.share.partition.limits import (
    AcquireMode,
    ShareLimits,
    is_delivered_alone,
    throttle_count_min,
    throttled_records_max,
)
from barnabas.storage.format.control_runs import ControlRuns

UNBOUNDED_OFFSET = (1 << 63) - 1

_UNLIMITED_COUNT = 1 << 63
"""More records than any batch has."""

Span = tuple[int, int]
"""First and last offset of the range that has been read, both inclusive."""

EVERYTHING: Sequence[Span] = ((0, UNBOUNDED_OFFSET),)


class AvailablePart(NamedTuple):
    """A piece of an available run; both offsets are data offsets, inclusive."""

    batch: InFlightBatch
    first_offset: int
    last_offset: int
    delivery_count: int


class Selection(NamedTuple):
    """Parts that may be delivered together, ascending, and their number of records."""

    parts: list[AvailablePart]
    record_count: int
    is_closed: bool
    """Nothing may follow: the last records must be delivered without others, or there are many parts."""


NONE_SELECTED = Selection([], 0, is_closed=False)


def select_available(
    in_flight: InFlight,
    records_max: int,
    limits: ShareLimits,
    acquire_mode: AcquireMode,
    spans: Sequence[Span],
) -> Selection:
    """The available records within the spans that may be delivered together, lowest first.

    An in-flight batch is delivered whole if there is no record limit, even beyond `records_max`. Of an
    `UnreadBatch` no more than that is selected: the caller goes on to the producer batch's end.
    """
    is_limited = acquire_mode is AcquireMode.RECORD_LIMIT
    return select_parts(
        in_flight, _available_batches(in_flight, spans), records_max, limits, is_limited=is_limited
    )


def select_parts(
    in_flight: InFlight,
    parts_of_batches: Iterable[list[AvailablePart]],
    records_max: int,
    limits: ShareLimits,
    *,
    is_limited: bool,
) -> Selection:
    """Those of the parts that may be delivered together; `parts_of_batches` has a list for each in-flight
    batch, ascending. See `select_available`.
    """
    selected: list[AvailablePart] = []
    record_count = 0
    count_min = throttle_count_min(limits.delivery_count_max)
    for parts in parts_of_batches:
        is_cut = is_limited or isinstance(parts[0].batch, UnreadBatch)
        budget = records_max - record_count if is_cut else _UNLIMITED_COUNT
        if max(part.delivery_count for part in parts) >= count_min:
            if not selected:
                selected, record_count = _throttle(in_flight, parts, budget, limits)
            return Selection(selected, record_count, is_closed=True)
        taken, count = _limit(in_flight.control_runs, parts, budget)
        selected += taken
        record_count += count
        if record_count >= records_max:
            break
    return Selection(selected, record_count, is_closed=False)


def _available_batches(in_flight: InFlight, spans: Sequence[Span]) -> Iterator[list[AvailablePart]]:
    """The available parts of each batch that has any."""
    assert in_flight.available_from is not None
    first_offset = max(in_flight.available_from, spans[0][0])
    last_offset = min(in_flight.available_to, spans[-1][1])
    if not in_flight.has_delayed:
        yield from _parts_between(in_flight, first_offset, last_offset, spans)
        return
    for first, last in in_flight.available_ranges.between(first_offset, last_offset):
        first_offset = max(first, first_offset)
        if first_offset <= last:
            for parts in _parts_between(in_flight, first_offset, min(last, last_offset), spans):
                yield parts
                first_offset = parts[0].batch.last_offset + 1


def _parts_between(
    in_flight: InFlight, first_offset: int, last_offset: int, spans: Sequence[Span]
) -> Iterator[list[AvailablePart]]:
    """The available parts of each batch that overlaps the range and has any."""
    for position in range(in_flight.batch_index(first_offset), len(in_flight.batches)):
        batch = in_flight.batches[position]
        if batch.base_offset > last_offset:
            return
        parts = available_parts(in_flight, batch, spans)
        if parts:
            yield parts


def available_parts(in_flight: InFlight, batch: InFlightBatch, spans: Sequence[Span]) -> list[AvailablePart]:
    """The available records of a batch within the spans, without those that wait until they are due."""
    control_runs = in_flight.control_runs
    parts: list[AvailablePart] = []
    for run in batch.runs:
        if run.state is not AVAILABLE or run.condition is not None:
            continue
        for span_first_offset, span_last_offset in spans:
            first_offset = control_runs.next_data_offset(max(run.first_offset, span_first_offset))
            last_offset = min(run.last_offset, span_last_offset)
            if first_offset <= last_offset:
                last_offset = control_runs.previous_data_offset(last_offset)
                parts.append(AvailablePart(batch, first_offset, last_offset, run.delivery_count))
    return parts


def _limit(
    control_runs: ControlRuns, parts: Iterable[AvailablePart], budget: int
) -> tuple[list[AvailablePart], int]:
    """The first `budget` records of the parts, and their number."""
    limited: list[AvailablePart] = []
    total = 0
    for part in parts:
        count = control_runs.data_count(part.first_offset, part.last_offset)
        if total + count <= budget:
            limited.append(part)
            total += count
            continue
        if total < budget:
            last_offset = control_runs.nth_data_offset(part.first_offset, budget - total)
            limited.append(part._replace(last_offset=last_offset))
        return limited, budget
    return limited, total


def _throttle(
    in_flight: InFlight, parts: list[AvailablePart], budget: int, limits: ShareLimits
) -> tuple[list[AvailablePart], int]:
    """The few records that are delivered together from a batch with records near their delivery limit, and
    their number, which is at most `budget`.

    The first part near the limit sets the number; the counts of later parts do not change it. A part that has
    to be delivered alone is not selected behind another one.
    """
    control_runs, count_max = in_flight.control_runs, limits.delivery_count_max
    count_min = throttle_count_min(count_max)
    near = next(index for index, part in enumerate(parts) if part.delivery_count >= count_min)
    selected, total = _limit(control_runs, parts[:near], budget)
    near_count = parts[near].delivery_count
    if is_delivered_alone(near_count, count_max):
        return (selected, total) if selected else _limit(control_runs, parts[near:], 1)
    batch = parts[near].batch
    batch_size = control_runs.data_count(batch.base_offset, batch.last_offset)
    together_max = min(budget, throttled_records_max(batch_size, near_count, count_min))
    if total >= together_max:
        return selected, total
    not_alone = takewhile(lambda part: not is_delivered_alone(part.delivery_count, count_max), parts[near:])
    taken, count = _limit(control_runs, not_alone, together_max - total)
    return selected + taken, total + count
