"""The ends of waits: records that were released with a delay become available when they are due.

There is no timer per record: one lower bound of the due times, and a scan of the bounded in-flight list when
it is reached. Nothing is recorded then, because a due time that has passed means the same as none.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import Condition, Due, StateRange
from barnabas.share.partition.due_times import DELAY_MS_MAX
from barnabas.share.partition.in_flight import AVAILABLE, InFlight, InFlightBatch, InFlightRun


def end_waits(in_flight: InFlight, now_ms: int) -> bool:
    """Makes the records available that are due at `now_ms` (monotonic), and the bound of the others exact.
    Returns whether there are any.
    """
    wall_ms = in_flight.due_times.wall_ms(now_ms)
    if in_flight.due_from_ms is None or wall_ms < in_flight.due_from_ms:
        return False
    in_flight.due_from_ms = None
    due: list[tuple[InFlightBatch, InFlightRun]] = []
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.state is AVAILABLE and isinstance(run.condition, Due):
                if run.condition.due_ms <= wall_ms:
                    due.append((batch, run))
                else:
                    in_flight.note_due(run.condition)
    for _, run in due:
        in_flight.free(run, AVAILABLE)
    for batch, run in due:
        batch.join(run.first_offset, run.last_offset)
    return bool(due)


def follow_wall_clock(in_flight: InFlight, ahead_ms: int) -> None:
    """If the wall clock was set, moves the due times with it: all records wait as long as they would have.

    `ahead_ms` is the wall-clock time minus the monotonic time. The recorded due times stay, and later ones
    are recorded by the clock as it is now.
    """
    step_ms = in_flight.due_times.adopt(ahead_ms)
    if not step_ms or in_flight.due_from_ms is None:
        return
    in_flight.due_from_ms += step_ms
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.state is AVAILABLE and isinstance(run.condition, Due):
                run.condition = Due(run.condition.due_ms + step_ms)


def condition_at_load(loaded: StateRange, wall_ms: int) -> Condition | None:
    """The condition of a loaded range: a due time that has passed at this wall-clock time is none."""
    due = loaded.condition
    if not isinstance(due, Due):
        return due
    return Due(min(due.due_ms, wall_ms + DELAY_MS_MAX)) if due.due_ms > wall_ms else None


def waiting_count(in_flight: InFlight) -> int:
    """The records that wait until they are due."""
    if in_flight.due_from_ms is None:
        return 0
    data_count = in_flight.control_runs.data_count
    return sum(
        data_count(max(run.first_offset, in_flight.spso), run.last_offset)
        for batch in in_flight.batches
        for run in batch.runs
        if run.waits
    )
