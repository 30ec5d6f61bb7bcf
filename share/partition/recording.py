"""What of a share-partition's live state goes into its control records.

Acquired is never recorded: such a range is written as Available with one delivery less, where it lies below
something recorded, and not at all above. So a delta that changes records beyond the durable end first fills
what lies between. Encoding, chains and checkpoints' headers belong to whoever appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.protocol.control_record import RecordState, StateRange
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    InFlight,
    InFlightBatch,
    InFlightRun,
)
from barnabas.storage.format.share_image import ShareStateImage, merge_ranges, overlay_range


class DurableRanges(Protocol):
    """Anything that knows the recorded projection of live state; a SharePartition does."""

    def durable_ranges(self, first_offset: int, last_offset: int) -> list[StateRange]: ...


def delta_states(
    image: ShareStateImage, share_partition: DurableRanges, changes: Sequence[StateRange]
) -> list[StateRange]:
    """The states of the delta that records `changes` next after what `image` holds.

    The changes are in the order decided, of one decision or of several that share an append; where two name
    an offset, the later one wins. The result is ascending, disjoint, and has no hole behind the image's end.
    """
    states: list[StateRange] = []
    end_offset = image.end_offset
    previous_last_offset = -1
    is_ascending = True
    for change in changes:
        if change.base_offset > end_offset:
            states += share_partition.durable_ranges(end_offset, change.base_offset - 1)
        states.append(change)
        is_ascending = is_ascending and change.base_offset > previous_last_offset
        previous_last_offset = change.last_offset
        end_offset = max(end_offset, change.last_offset + 1)
    if is_ascending:
        return merge_ranges(states)
    ordered: list[StateRange] = []
    for state in states:
        overlay_range(ordered, state)
    return ordered


def projected(run: InFlightRun) -> tuple[RecordState, int]:
    """The state and delivery count by which a run that isn't pending final is recorded."""
    if run.state is ACQUIRED:
        return AVAILABLE, run.delivery_count - 1
    return run.state, run.delivery_count


def durable_ranges(in_flight: InFlight, first_offset: int, last_offset: int) -> list[StateRange]:
    """The recorded projection of the live state in a range, ascending, up to the SPEO.

    What the SPSO has passed without a record of it (a hole in the log, a log start that moved) is Archived.
    """
    ranges: list[StateRange] = []
    if first_offset < in_flight.spso:
        ranges.append(StateRange(first_offset, min(last_offset, in_flight.spso - 1), ARCHIVED, 0))
    for _, run in in_flight.runs_between(first_offset, last_offset):
        base_offset = max(run.first_offset, first_offset)
        ranges.append(StateRange(base_offset, min(run.last_offset, last_offset), *projected(run)))
    return merge_ranges(ranges)


class Unrecorded:
    """Changes that stand (see `decision`) and whose write failed; the next decision takes them along.

    A change that has been overtaken since is dropped; one of a record whose next change is on its way to the
    log waits for the end of that, so that the log never goes back. Bounded by the records in flight.
    """

    __slots__ = ("_awaited", "_changes")

    def __init__(self) -> None:
        self._changes: list[StateRange] = []
        self._awaited: list[tuple[InFlightBatch, InFlightRun]] = []

    @property
    def is_any(self) -> bool:
        return bool(self._changes)

    def keep(self, decision: Decision) -> None:
        """Keeps what stands of a decision whose write has failed."""
        self._changes += decision.kept
        self._awaited += decision.awaited

    def ride_on(self, decision: Decision, in_flight: InFlight) -> None:
        """Puts what is kept in front of the decision's own changes."""
        if not self._changes:
            return
        due, self._changes = self._sorted_out(in_flight)
        decision.changes[:0] = due
        decision.kept[:0] = due
        decision.awaited += self._awaited
        self._awaited = []

    def _sorted_out(self, in_flight: InFlight) -> tuple[list[StateRange], list[StateRange]]:
        due: list[StateRange] = []
        waiting: list[StateRange] = []
        for change in self._changes:
            for _, run in in_flight.runs_between(change.base_offset, change.last_offset):
                if projected(run) == (change.state, change.delivery_count):
                    piece = change._replace(
                        base_offset=max(run.first_offset, change.base_offset),
                        last_offset=min(run.last_offset, change.last_offset),
                    )
                    (waiting if run.pending and run.state is ACQUIRED else due).append(piece)
        return merge_ranges(due), merge_ranges(waiting)
