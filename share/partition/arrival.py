"""New records of groups in which records are delayed, or have a time to live.

In such a group, the records that were read come in flight before they are selected: those of the present as
available ones, delayed ones with their due time, expired ones as archived ones or on their way to dead
letters, and batches without data for a member as archived ones. All but the first is recorded, so that a
restart does not have to look into the records again. Other groups acquire new records without this detour.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.protocol.delivery_state import Cause, Due
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.locks import archive, archive_unheld
from barnabas.share.partition.window import AVAILABLE, Batch, Run, Window
from barnabas.storage.format.control_runs import ControlRuns


class Bounds(Protocol):
    """A producer batch that was read; both offsets are inclusive."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class TimedPart(NamedTuple):
    """Neighbouring records of a batch that may not be delivered now; both offsets are inclusive."""

    first_offset: int
    last_offset: int
    fate: Due | Cause
    """When they are due, if they are new; or the cause by which they are archived: EXPIRED, with a dead
    letter if the group has them, GAP or TRANSACTION_ABORTED."""


def piece_ends(
    control_runs: ControlRuns,
    batches: Sequence[Bounds],
    first_offset: int,
    last_offset: int,
    batch_size: int,
) -> list[int]:
    """The last offsets of the pieces of at least `batch_size` records, cut where producer batches begin."""
    ends: list[int] = []
    if control_runs.data_count(first_offset, last_offset) > batch_size:
        for batch in batches:
            if batch.base_offset > last_offset:
                break
            if batch.base_offset > first_offset:
                piece_last_offset = control_runs.previous_data_offset(batch.base_offset - 1)
                if control_runs.data_count(first_offset, piece_last_offset) >= batch_size:
                    ends.append(piece_last_offset)
                    first_offset = batch.base_offset
    ends.append(last_offset)
    return ends


def put_in_flight(window: Window, batches: Sequence[Bounds], batch_size: int) -> list[Batch]:
    """The offsets from the SPEO to the end of the producer batches come in flight as available ones, in
    batches of about this size. Returns these.
    """
    new: list[Batch] = []
    bounds = [batch for batch in batches if batch.last_offset >= window.speo]
    if not bounds:
        return new
    first_offset = max(bounds[0].base_offset, window.speo)
    for end in piece_ends(window.control_runs, bounds, first_offset, bounds[-1].last_offset, batch_size):
        new.append(Batch(window.speo, end, [Run(window.speo, end, AVAILABLE, 0)]))
        window.append(new[-1])
    return new


def admit(
    window: Window,
    changes: Decision,
    batches: Sequence[Bounds],
    timed: Sequence[TimedPart],
    batch_size: int,
    limits: ShareLimits,
) -> list[Batch]:
    """The records of these producer batches come in flight, as far as they are new, and the timed records of
    them, or of others in flight, change their state. `changes` has that, to be recorded. Returns the new
    in-flight batches.
    """
    first_new_offset = window.speo
    new = put_in_flight(window, batches, batch_size)
    if new:
        _archive_holes(window, changes, batches, first_new_offset)
    for first_offset, last_offset, fate in timed:
        if isinstance(fate, Due):
            _delay(window, changes, max(first_offset, first_new_offset), last_offset, fate)
        else:
            letter = limits.letter_place if fate is Cause.EXPIRED else None
            archive_unheld(window, changes, first_offset, last_offset, fate, letter)
    for batch in new:
        for run in batch.runs:
            if run.state is AVAILABLE and not run.waits:
                window.note_available(run.first_offset, run.last_offset)
    return new


def _archive_holes(
    window: Window, changes: Decision, batches: Sequence[Bounds], first_new_offset: int
) -> None:
    """Archives new offsets between the batches, which compaction has emptied."""
    control_runs = window.control_runs
    previous = first_new_offset - 1
    for batch in batches:
        if batch.last_offset < first_new_offset:
            continue
        first_offset = control_runs.next_data_offset(previous + 1)
        if first_offset < batch.base_offset:
            hole_end = control_runs.previous_data_offset(batch.base_offset - 1)
            archive(window, changes, first_offset, hole_end, AVAILABLE, Cause.GAP)
        previous = batch.last_offset


def _delay(window: Window, changes: Decision, first_offset: int, last_offset: int, due: Due) -> None:
    """The new records of the range wait until then."""
    for _, run in window.parts(
        first_offset, last_offset, lambda run: run.state is AVAILABLE and run.condition is None
    ):
        run.condition = due
        window.note_delayed(run, due)
        changes.add_change(run.first_offset, run.last_offset, AVAILABLE, 0, Cause.NONE, None, due)
