"""The live state of a new leader, from the durable image: the records in flight, and those that wait. Pure.

Locks are not recorded, so a record that a member held is available again; but one whose acknowledgement waits
for a transaction is still held.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import (
    Condition,
    Due,
    PendingAcknowledgement,
    RecordState,
    StateRange,
)
from barnabas.share.partition.due_times import WAIT_MS_MAX
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import (
    ACQUIRED,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
    UnreadBatch,
)
from barnabas.storage.format.share_image import ShareStateImage


def restore(in_flight: InFlight, image: ShareStateImage, now_ms: int, retry_delay_ms_max: int) -> None:
    """Puts the records of the image in flight; those whose due time has passed at `now_ms` (monotonic) do not
    wait. `retry_delay_ms_max` is the longest delay of a retry in the group.
    """
    wall_ms = in_flight.due_times.wall_ms(now_ms)
    for recorded in image.ranges:
        _put_in_flight(in_flight, recorded.base_offset - 1, AVAILABLE, 0)
        condition = condition_at_load(recorded, wall_ms, retry_delay_ms_max)
        _put_in_flight(
            in_flight, recorded.last_offset, _live_state(recorded), recorded.delivery_count, condition
        )
    _put_in_flight(in_flight, image.end_offset - 1, AVAILABLE, 0)
    in_flight.advance()


def _put_in_flight(
    in_flight: InFlight,
    last_offset: int,
    state: RecordState,
    delivery_count: int,
    condition: Condition | None = None,
) -> None:
    """Puts the offsets from the SPEO to `last_offset` in flight as one batch, if there are records."""
    last_offset = in_flight.control_runs.previous_data_offset(last_offset)
    if last_offset < in_flight.speo:
        return
    run = InFlightRun(in_flight.speo, last_offset, state, delivery_count, condition=condition)
    if state is AVAILABLE and not isinstance(condition, Due):
        in_flight.note_available(run.first_offset, last_offset)
    kind = UnreadBatch if state is AVAILABLE and not delivery_count and not run.waits else InFlightBatch
    in_flight.append(kind(run.first_offset, last_offset, [run]))
    if isinstance(condition, Due):
        note = in_flight.note_delayed if run.is_delayed else in_flight.note_waiting
        note(run, condition)


def _live_state(recorded: StateRange) -> RecordState:
    """A record whose acknowledgement waits for a transaction is still held."""
    return ACQUIRED if isinstance(recorded.condition, PendingAcknowledgement) else recorded.state


def condition_at_load(loaded: StateRange, wall_ms: int, retry_delay_ms_max: int) -> Condition | None:
    """The condition of a loaded range: a due time that has passed at this wall-clock time is none.

    A due time that is further away than the longest delay was written before the wall clock was set back, or
    before the group's longest delay was shortened.
    """
    due = loaded.condition
    if not isinstance(due, Due):
        return due
    wait_ms_max = retry_delay_ms_max if loaded.delivery_count else WAIT_MS_MAX
    return Due(min(due.due_ms, wall_ms + wait_ms_max)) if due.due_ms > wall_ms else None
