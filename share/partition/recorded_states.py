"""The part of a share-partition's live state that is recorded. Acquired is never recorded: such a range is
written as Available with one delivery less. The delivery counts once the record's acknowledgement is pending.
Pure.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
)
from barnabas.storage.format.share_image import merge_ranges


def projected(run: InFlightRun) -> tuple[RecordState, int]:
    """The state and delivery count by which a run that isn't pending final is recorded."""
    if run.state is ACQUIRED:
        return AVAILABLE, run.delivery_count - (run.condition is None)
    return run.state, run.delivery_count


def durable_ranges(in_flight: InFlight, first_offset: int, last_offset: int) -> list[StateRange]:
    """The recorded projection of the live state in a range, ascending, up to the SPEO.

    Ranges that the SPSO has passed without a record (a hole in the log, a moved log start) are Archived.
    """
    ranges: list[StateRange] = []
    if first_offset < in_flight.spso:
        ranges.append(StateRange(first_offset, min(last_offset, in_flight.spso - 1), ARCHIVED, 0))
    for _, run in in_flight.runs_between(first_offset, last_offset):
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

    __slots__ = ("_changes", "_given_up_runs")

    def __init__(self) -> None:
        self._changes: list[StateRange] = []
        self._given_up_runs: list[tuple[InFlightBatch, InFlightRun]] = []

    @property
    def is_any(self) -> bool:
        return bool(self._changes)

    def keep(self, decision: Decision) -> None:
        """Keeps the immediate changes of a decision whose write has failed."""
        self._changes += decision.immediate
        self._given_up_runs += decision.given_up_runs

    def add_to(self, decision: Decision, in_flight: InFlight) -> None:
        """Puts the kept changes in front of the decision's own changes."""
        if not self._changes:
            return
        due, self._changes = self._sorted_out(in_flight)
        decision.changes[:0] = due
        decision.immediate[:0] = due
        decision.letters += (change for change in due if change.state is ARCHIVING)
        decision.given_up_runs += self._given_up_runs
        self._given_up_runs = []

    def _sorted_out(self, in_flight: InFlight) -> tuple[list[StateRange], list[StateRange]]:
        due: list[StateRange] = []
        waiting: list[StateRange] = []
        for change in self._changes:
            for _, run in in_flight.runs_between(change.base_offset, change.last_offset):
                if projected(run) == (change.state, change.delivery_count):
                    piece = change._replace(
                        base_offset=max(run.first_offset, change.base_offset),
                        last_offset=min(run.last_offset, change.last_offset),
                        # The due time has moved with the wall clock if that was set, and may have passed.
                        condition=run.condition if run.state is AVAILABLE else change.condition,
                    )
                    (waiting if run.pending and run.state is ACQUIRED else due).append(piece)
        return merge_ranges(due), merge_ranges(waiting)
