"""The states of a share-partition's records as an administrator sees them, with the member that holds each
record, and the reason why it waits. Nothing is changed. Pure.

Ranges begin and end with records: control offsets are left out at their ends, and may lie inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.protocol.delivery_state import Due
from barnabas.protocol.record_inspection import DescribedState, Wait
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.record_order import RecordOrder
from barnabas.share.partition.window import ACQUIRED, AVAILABLE, Run, Window
from barnabas.storage.format.control_runs import ControlRuns

UNKNOWN_COUNT = -1
"""The delivery count of records that the start offset has passed."""

_UNFINISHED = (DescribedState.AVAILABLE, DescribedState.ACQUIRED)
"""The states of the records whose priorities a leader knows."""


class InspectionBounds(NamedTuple):
    """The offsets between which records are inspected. All but the first are those of the log."""

    first_offset: int
    log_start_offset: int
    upper_offset: int
    """Exclusive: the end of the records that the group may read, by its isolation level."""
    high_watermark: int
    gate: tuple[int, int] | None = None
    """The first new record that is not due, and when it is (wall-clock time; 0 if that depends on others)."""


class InspectedRange(NamedTuple):
    """Neighbouring records that are alike in all fields below; both ends are inclusive."""

    first_offset: int
    last_offset: int
    state: DescribedState
    delivery_count: int
    wait: Wait = Wait.NOTHING
    owner: str | None = None
    lock_deadline_ms: int = 0
    """Monotonic; it has a meaning only beside an owner."""
    due_ms: int = 0
    """With `Wait.DUE`: when the first of the records is due, in wall-clock time; 0 if that is unknown."""
    acquired_ms: int = 0
    """When the owner acquired them; monotonic, and with a meaning only beside an owner."""
    priority: int | None = None
    """With `share.priority.header`: that of available and acquired records that the leader has looked at;
    None for others.
    """


def failed_delivery_count(inspected: InspectedRange) -> int:
    """The deliveries that have ended without a final state; 0 for records that are new, or final."""
    if inspected.state is DescribedState.AVAILABLE:
        return inspected.delivery_count
    return inspected.delivery_count - 1 if inspected.state is DescribedState.ACQUIRED else 0


def inspect(
    window: Window, order: RecordOrder, limits: ShareLimits, bounds: InspectionBounds
) -> Iterator[InspectedRange]:
    """The ranges from the first offset to the high watermark, ascending; none while the start offset is
    undecided. The share-partition must not change before the last one is taken.
    """
    if window.spso < 0:
        return iter(())
    return _merged(window.control_runs, _ranges(window, order, limits, bounds))


def _ranges(
    window: Window, order: RecordOrder, limits: ShareLimits, bounds: InspectionBounds
) -> Iterator[InspectedRange]:
    first_offset = max(bounds.first_offset, bounds.log_start_offset)
    if first_offset < window.spso:
        yield InspectedRange(first_offset, window.spso - 1, DescribedState.PASSED, UNKNOWN_COUNT)
    ranges = _in_flight(window, order, limits, max(first_offset, window.spso))
    yield from _with_priorities(order, ranges) if order.has_priorities and order.follows(limits) else ranges
    yield from _new(window, order, limits, bounds, max(first_offset, window.speo))


def _in_flight(
    window: Window, order: RecordOrder, limits: ShareLimits, first_offset: int
) -> Iterator[InspectedRange]:
    is_order_changing = _is_order_changing(window, order, limits)
    for _, run in window.runs_between(first_offset, window.speo - 1):
        first, state = max(run.first_offset, first_offset), DescribedState(run.state)
        if run.pending:
            yield _of_run(run, first, run.last_offset, state, Wait.RECORDING)
        elif run.state is ACQUIRED and run.condition is not None:
            yield _of_run(run, first, run.last_offset, state, Wait.TRANSACTION)
        elif run.state is not AVAILABLE:
            yield _of_run(run, first, run.last_offset, state, Wait.NOTHING)
        elif run.waits:
            yield _of_run(run, first, run.last_offset, state, Wait.DUE)
        elif is_order_changing:
            yield _of_run(run, first, run.last_offset, state, Wait.ORDER_CHANGE)
        else:
            for piece_first, piece_last, is_waiting in order.waiting_pieces(window, first, run.last_offset):
                wait = Wait.KEY if is_waiting else Wait.NOTHING
                yield _of_run(run, piece_first, piece_last, state, wait)


def _of_run(
    run: Run, first_offset: int, last_offset: int, state: DescribedState, wait: Wait
) -> InspectedRange:
    due_ms = run.condition.due_ms if isinstance(run.condition, Due) else 0
    return InspectedRange(
        first_offset,
        last_offset,
        state,
        run.delivery_count,
        wait,
        run.owner,
        run.lock_deadline_ms,
        due_ms,
        run.acquired_ms,
    )


def _with_priorities(order: RecordOrder, ranges: Iterable[InspectedRange]) -> Iterator[InspectedRange]:
    for inspected in ranges:
        if inspected.state not in _UNFINISHED:
            yield inspected
            continue
        for first_offset, last_offset, priority in order.priority_pieces(
            inspected.first_offset, inspected.last_offset
        ):
            yield inspected._replace(first_offset=first_offset, last_offset=last_offset, priority=priority)


def _new(
    window: Window, order: RecordOrder, limits: ShareLimits, bounds: InspectionBounds, first_offset: int
) -> Iterator[InspectedRange]:
    """The records that are not in flight yet: those that the group may read, then those of open
    transactions.
    """
    wait = Wait.NOTHING
    if _is_order_changing(window, order, limits):
        wait = Wait.ORDER_CHANGE
    elif window.size() >= limits.record_locks_max:
        wait = Wait.WINDOW
    readable_end = max(first_offset, bounds.upper_offset)
    if bounds.gate is not None and bounds.gate[0] < readable_end:
        gate_offset, due_ms = bounds.gate
        gate_offset = max(first_offset, gate_offset)
        yield InspectedRange(first_offset, gate_offset - 1, DescribedState.NEW, 0, wait)
        yield InspectedRange(gate_offset, readable_end - 1, DescribedState.NEW, 0, Wait.DUE, due_ms=due_ms)
    else:
        yield InspectedRange(first_offset, readable_end - 1, DescribedState.NEW, 0, wait)
    yield InspectedRange(readable_end, bounds.high_watermark - 1, DescribedState.NEW, 0, Wait.TRANSACTION)


def _is_order_changing(window: Window, order: RecordOrder, limits: ShareLimits) -> bool:
    """Whether a change of `share.order` waits for locks, see `SharePartition._follows_order`."""
    return not order.follows(limits) and any(run.state is ACQUIRED for _, run in window.all_runs())


def _merged(control_runs: ControlRuns, ranges: Iterable[InspectedRange]) -> Iterator[InspectedRange]:
    """The ranges from record to record, with equal neighbours joined; those without a record are left out."""
    newest: InspectedRange | None = None
    for inspected in ranges:
        first_offset = control_runs.next_data_offset(inspected.first_offset)
        if first_offset > inspected.last_offset:
            continue
        last_offset = control_runs.previous_data_offset(inspected.last_offset)
        if newest is not None and newest[2:] == inspected[2:]:
            newest = newest._replace(last_offset=last_offset)
            continue
        if newest is not None:
            yield newest
        newest = inspected._replace(first_offset=first_offset, last_offset=last_offset)
    if newest is not None:
        yield newest
