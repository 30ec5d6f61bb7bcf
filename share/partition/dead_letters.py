"""Records on their way to dead letters (KIP-1191): the steps after a record has become Archiving. Pure.

An Archiving record is not delivered again, cannot be acknowledged, and holds the start offset. Its place is
recorded with it, so that after a crash its dead letter can be looked for. It ends as Archived.

Records become Archiving in `acknowledgement` (REJECT, the delivery limit) and in `locks` (the limit, expiry,
administrators). Once that is recorded, the leader has `share.dead_letters` write their letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.window import ARCHIVED, ARCHIVING, RunInBatch, Span, Window


def archiving_ranges(window: Window) -> list[StateRange]:
    """The records whose dead letter is due, ascending."""
    return [
        StateRange(run.first_offset, run.last_offset, run.state, run.delivery_count, condition=run.condition)
        for _, run in window.runs_between(window.spso, window.speo)
        if run.state is ARCHIVING
    ]


def decide_archived(window: Window, ranges: Iterable[Span], cause: Cause) -> Decision:
    """The letters of the Archiving records in these ranges are written, or given up: `cause` tells which."""
    decision = Decision()
    for batch, run in _archiving_runs(window, ranges):
        decision.aim(batch, run, ARCHIVED, cause, None)
    return decision


def decide_letter_place(window: Window, ranges: Iterable[Span], place: LetterPlace) -> Decision:
    """The letters of the Archiving records in these ranges go to another place. Their reasons stay.

    The changes have no cause: the records were given up before, and that is counted and told once.
    """
    decision = Decision()
    for batch, run in _archiving_runs(window, ranges):
        assert isinstance(run.condition, LetterPlace), (run.first_offset, run.state)
        placed = place._replace(reason=run.condition.reason)
        decision.aim(batch, run, ARCHIVING, Cause.NONE, None, placed)
    return decision


def _archiving_runs(window: Window, ranges: Iterable[Span]) -> Iterator[RunInBatch]:
    """The Archiving records of the ranges that no other decision changes, as runs of their own."""
    for first_offset, last_offset in ranges:
        yield from window.parts(
            first_offset, last_offset, lambda run: run.state is ARCHIVING and not run.pending
        )
