"""The ends of waits: records that were released with a delay, or delayed before their first delivery, become
available when they are due.

There is no timer per record: the first due time is the deadline of the whole share-partition. Nothing is
recorded when it is reached, because a due time that has passed means the same as none.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import Due
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import AVAILABLE, InFlightBatch, InFlightRun
from barnabas.share.partition.wait_queue import Waiting


def end_waits(in_flight: InFlight, now_ms: int) -> bool:
    """Makes the records available that are due at `now_ms` (monotonic). Returns whether there are any."""
    ended: list[tuple[InFlightBatch, InFlightRun]] = []
    for waiting in in_flight.wait_queue.take_due(in_flight.due_times.wall_ms(now_ms)):
        due = _runs_of(in_flight, waiting)
        for _, run in due:
            in_flight.free(run, AVAILABLE)
        ended += due
    for batch, run in ended:
        batch.join(run.first_offset, run.last_offset)
    return bool(ended)


def _runs_of(in_flight: InFlight, waiting: Waiting) -> list[tuple[InFlightBatch, InFlightRun]]:
    """The runs that still wait until the time of the entry."""
    due = Due(waiting.due_ms)
    runs = in_flight.runs_between(waiting.first_offset, waiting.last_offset)
    return [(batch, run) for batch, run in runs if run.state is AVAILABLE and run.condition == due]


def follow_wall_clock(in_flight: InFlight, ahead_ms: int) -> None:
    """If the wall clock was set, moves the due times of retries with it: these records wait as long as they
    would have. Delayed records follow the new clock, because their due times follow from timestamps.

    `ahead_ms` is the wall-clock time minus the monotonic time. The recorded due times stay; times that are
    recorded from now on are of the new clock.
    """
    step_ms = in_flight.due_times.adopt(ahead_ms)
    if not step_ms or in_flight.wait_queue.first_due_ms is None:
        return
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.state is AVAILABLE and isinstance(run.condition, Due) and not run.is_delayed:
                run.condition = Due(run.condition.due_ms + step_ms)
    in_flight.build_wait_queue()


def waiting_count(in_flight: InFlight) -> int:
    """The records that wait until they are due."""
    if in_flight.wait_queue.first_due_ms is None:
        return 0
    data_count = in_flight.control_runs.data_count
    return sum(
        data_count(max(run.first_offset, in_flight.spso), run.last_offset)
        for batch in in_flight.batches
        for run in batch.runs
        if run.waits
    )
