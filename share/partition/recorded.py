"""The recorded form of a share-partition's live state, and the live state that follows from it. Pure.

Acquired is never recorded: such a range is written as Available with one delivery less. The delivery counts
once the record's acknowledgement is pending. So after a restart a record that a member held is available
again; but one whose acknowledgement waits for a transaction is still held.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import (
    Condition,
    Due,
    PendingAcknowledgement,
    RecordState,
    StateRange,
)
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.waits import WAIT_MS_MAX
from barnabas.share.partition.window import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    FETCHED,
    UNREAD,
    Batch,
    Run,
    RunInBatch,
    Window,
)
from barnabas.storage.format.share_image import ShareStateImage, merge_ranges


def projected(run: Run) -> tuple[RecordState, int]:
    """The state and delivery count by which a run that isn't pending final is recorded."""
    if run.state is ACQUIRED:
        return AVAILABLE, run.delivery_count - (run.condition is None)
    return run.state, run.delivery_count


def durable_ranges(window: Window, first_offset: int, last_offset: int) -> list[StateRange]:
    """The recorded projection of the live state in a range, ascending, up to the SPEO.

    Ranges that the SPSO has passed without a record (a hole in the log, a moved log start) are Archived.
    """
    ranges: list[StateRange] = []
    if first_offset < window.spso:
        ranges.append(StateRange(first_offset, min(last_offset, window.spso - 1), ARCHIVED, 0))
    for _, run in window.runs_between(first_offset, last_offset):
        base_offset = max(run.first_offset, first_offset)
        end = min(run.last_offset, last_offset)
        ranges.append(StateRange(base_offset, end, *projected(run), condition=run.condition))
    return merge_ranges(ranges)


class Unrecorded:
    """Immediate changes (see `decision`) whose write failed; the next decision includes them.

    A change that has been overtaken since is dropped, and a due time is the present one. A change of a record
    whose next change is under way to the log waits for the end of that write, so that the log never goes
    back. Bounded by the records in flight.
    """

    __slots__ = ("_given_up_runs", "changes")

    def __init__(self) -> None:
        self.changes: list[StateRange] = []
        self._given_up_runs: list[RunInBatch] = []

    def keep(self, decision: Decision) -> None:
        """Keeps the immediate changes of a decision whose write has failed."""
        self.changes += decision.immediate
        self._given_up_runs += decision.given_up_runs

    def add_to(self, decision: Decision, window: Window) -> None:
        """Puts the kept changes in front of the decision's own changes."""
        if not self.changes:
            return
        due, self.changes = self._sorted_out(window)
        decision.changes[:0] = due
        decision.gives_up |= any(change.state is not AVAILABLE for change in due)
        decision.immediate[:0] = due
        decision.letters += (change for change in due if change.state is ARCHIVING)
        decision.given_up_runs += self._given_up_runs
        self._given_up_runs = []

    def _sorted_out(self, window: Window) -> tuple[list[StateRange], list[StateRange]]:
        due: list[StateRange] = []
        waiting: list[StateRange] = []
        for change in self.changes:
            for _, run in window.runs_between(change.base_offset, change.last_offset):
                if projected(run) == (change.state, change.delivery_count):
                    piece = change._replace(
                        base_offset=max(run.first_offset, change.base_offset),
                        last_offset=min(run.last_offset, change.last_offset),
                        # The due time has moved with the wall clock if that was set, and may have passed.
                        condition=run.condition if run.state is AVAILABLE else change.condition,
                    )
                    (waiting if run.pending and run.state is ACQUIRED else due).append(piece)
        return merge_ranges(due), merge_ranges(waiting)


def restore(window: Window, image: ShareStateImage, wall_ms: int, retry_delay_ms_max: int) -> None:
    """Puts the records of the image in flight; those whose due time has passed at `wall_ms` do not wait.
    `retry_delay_ms_max` is the longest delay of a retry in the group.
    """
    for recorded in image.ranges:
        _put_in_flight(window, recorded.base_offset - 1, AVAILABLE, 0)
        condition = condition_at_load(recorded, wall_ms, retry_delay_ms_max)
        _put_in_flight(
            window, recorded.last_offset, _live_state(recorded), recorded.delivery_count, condition
        )
    _put_in_flight(window, image.end_offset - 1, AVAILABLE, 0)
    window.advance()


def _put_in_flight(
    window: Window,
    last_offset: int,
    state: RecordState,
    delivery_count: int,
    condition: Condition | None = None,
) -> None:
    """Puts the offsets from the SPEO to `last_offset` in flight as one batch, if there are records."""
    last_offset = window.control_runs.previous_data_offset(last_offset)
    if last_offset < window.speo:
        return
    run = Run(window.speo, last_offset, state, delivery_count, condition=condition)
    if state is AVAILABLE and not isinstance(condition, Due):
        window.note_available(run.first_offset, last_offset)
    kind = UNREAD if state is AVAILABLE and not delivery_count and not run.waits else FETCHED
    window.append(Batch(run.first_offset, last_offset, [run], kind))
    if isinstance(condition, Due):
        note = window.note_delayed if run.is_delayed else window.note_waiting
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
