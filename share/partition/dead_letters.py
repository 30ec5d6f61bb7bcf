"""Records on their way to dead letters (KIP-1191): the steps after a record has become Archiving. Pure.

An Archiving record is not delivered again, cannot be acknowledged, and holds the start offset. Its place is
recorded with it, so that after a crash its dead letter can be looked for. It ends as Archived.

Records become Archiving in `acknowledgement` (REJECT, the delivery limit) and in `locks` (the limit, expiry,
administrators). Once that is recorded, the leader has `share.dead_letters` write their letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.share.partition.decision import Decision, Target
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ARCHIVED, ARCHIVING, InFlightBatch, InFlightRun

Span = tuple[int, int]
"""First and last offset, both inclusive."""


def archiving_ranges(in_flight: InFlight) -> list[StateRange]:
    """The records whose dead letter is due, ascending."""
    return [
        StateRange(run.first_offset, run.last_offset, run.state, run.delivery_count, condition=run.condition)
        for _, run in in_flight.runs_between(in_flight.spso, in_flight.speo)
        if run.state is ARCHIVING
    ]


def decide_archived(in_flight: InFlight, ranges: Iterable[Span], cause: Cause) -> Decision:
    """The letters of the Archiving records in these ranges are written, or given up: `cause` tells which."""
    decision = Decision()
    for batch, run in _archiving_runs(in_flight, ranges):
        run.pending = True
        decision.targets.append(Target(batch, run, ARCHIVED))
        decision.add_change(run.first_offset, run.last_offset, ARCHIVED, run.delivery_count, cause, None)
    return decision


def decide_letter_place(in_flight: InFlight, ranges: Iterable[Span], place: LetterPlace) -> Decision:
    """The letters of the Archiving records in these ranges go to another place. Their reasons stay.

    The changes have no cause: the records were given up before, and that is counted and told once.
    """
    decision = Decision()
    for batch, run in _archiving_runs(in_flight, ranges):
        assert isinstance(run.condition, LetterPlace), (run.first_offset, run.state)
        placed = place._replace(reason=run.condition.reason)
        run.pending = True
        decision.targets.append(Target(batch, run, ARCHIVING, placed))
        decision.add_change(
            run.first_offset, run.last_offset, ARCHIVING, run.delivery_count, Cause.NONE, None, placed
        )
    return decision


def _archiving_runs(
    in_flight: InFlight, ranges: Iterable[Span]
) -> Iterator[tuple[InFlightBatch, InFlightRun]]:
    """The Archiving records of the ranges that no other decision changes, as runs of their own."""
    for first_offset, last_offset in ranges:
        yield from in_flight.parts(
            first_offset, last_offset, lambda run: run.state is ARCHIVING and not run.pending
        )
