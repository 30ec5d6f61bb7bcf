"""The ends of acquisition locks: expiry, the end of a share session, and records that are gone from the log.

KIP-932, "Acquisition locks" and "Share sessions". These changes are immediate (see `decision`): a released
record is available at once, or waits until it is due (`waits`); an archived one is final at once, although
the SPSO passes it, and its key is free, only after that is recorded. There is no timer per record: one lower
bound of the deadlines, and a scan of the bounded in-flight list when it is reached.

A member that ends its session has not failed, so its records do not wait. A session that ends with its
connection counts like an expired lock: the consumer may have died of the record.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, Condition, Due, LetterPlace, RecordState
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
)
from barnabas.share.partition.limits import NO_BACKOFF, RetryBackoff, ShareLimits
from barnabas.share.partition.overtaken import overtaken, take_back
from barnabas.share.partition.unread_batches import take_out_of_unread

RunInBatch = tuple[InFlightBatch, InFlightRun]

_SEEN_IN_THE_LOG = (Cause.GAP, Cause.TRANSACTION_ABORTED)
"""A record that ends for one of these causes is never delivered, recorded or not."""

_NO_LIMIT = ShareLimits(delivery_count_max=1 << 31)


def expire_locks(in_flight: InFlight, limits: ShareLimits, now_ms: int) -> Decision:
    """Ends the locks whose deadline has passed, and makes the bound of the others exact. A record whose
    acknowledgement waits for a transaction has no deadline.
    """
    decision = Decision()
    if in_flight.deadline_from_ms is None or now_ms < in_flight.deadline_from_ms:
        return decision
    ended: list[RunInBatch] = []
    in_flight.deadline_from_ms = None
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.state is not ACQUIRED or run.pending or run.condition is not None:
                continue
            if run.lock_deadline_ms <= now_ms:
                ended.append((batch, run))
            else:
                in_flight.note_deadline(run.lock_deadline_ms)
    _end_locks(in_flight, decision, ended, Cause.LOCK_EXPIRED, _Ends(limits, limits.retry_backoff, now_ms))
    return decision


def release_member(
    in_flight: InFlight, member_id: str, limits: ShareLimits, now_ms: int, *, is_clean: bool
) -> Decision:
    """Ends the member's locks. A lock on a record whose acknowledgement is being recorded ends if
    that fails, like an expired one.

    `is_clean` means that the member itself, or an administrator, has ended the session.
    """
    decision = Decision()
    ended: list[RunInBatch] = []
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.owner != member_id:
                continue
            if run.pending:
                run.lock_deadline_ms = now_ms
            else:
                ended.append((batch, run))
    backoff = NO_BACKOFF if is_clean else limits.retry_backoff
    _end_locks(in_flight, decision, ended, Cause.SESSION_ENDED, _Ends(limits, backoff, now_ms))
    return decision


def release(
    in_flight: InFlight, decision: Decision, first_offset: int, last_offset: int, cause: Cause
) -> None:
    """Makes the held records of the range (data offsets) available, also those at the delivery limit. No
    change of them may be pending.
    """
    ended = in_flight.parts(first_offset, last_offset, lambda run: run.state is ACQUIRED)
    _end_locks(in_flight, decision, ended, cause, _Ends(_NO_LIMIT, NO_BACKOFF, 0))


def archive(
    in_flight: InFlight,
    decision: Decision,
    first_offset: int,
    last_offset: int,
    was: RecordState,
    cause: Cause,
) -> None:
    """Archives the records of the range (data offsets) that are in state `was`.

    That must not be ACQUIRED for records acquired before this call: a change of theirs may be pending.
    """
    for batch, part in in_flight.parts(first_offset, last_offset, lambda run: run.state is was):
        _change_now(in_flight, decision, batch, part, ARCHIVED, cause)


def give_up(
    in_flight: InFlight,
    decision: Decision,
    first_offset: int,
    last_offset: int,
    cause: Cause,
    letter: LetterPlace | None,
) -> None:
    """Archives the available and the held records of the range (data offsets), or sends them on their way to
    dead letters, if these have a place. No change of them may be pending.
    """
    given_up = in_flight.parts(
        first_offset, last_offset, lambda run: run.state is AVAILABLE or run.state is ACQUIRED
    )
    _give_up(in_flight, decision, given_up, cause, letter)


def archive_unheld(
    in_flight: InFlight,
    decision: Decision,
    first_offset: int,
    last_offset: int,
    cause: Cause,
    letter: LetterPlace | None,
) -> None:
    """The same for the records of the range that no member holds, also those that wait until they are due."""
    take_out_of_unread(in_flight, first_offset, last_offset)
    unheld = in_flight.parts(first_offset, last_offset, _is_unheld)
    place = None if letter is None else letter._replace(reason=cause)
    _give_up(in_flight, decision, unheld, cause, place)


def _is_unheld(run: InFlightRun) -> bool:
    return run.state is AVAILABLE and (run.condition is None or isinstance(run.condition, Due))


def _give_up(
    in_flight: InFlight,
    decision: Decision,
    given_up: list[RunInBatch],
    cause: Cause,
    letter: LetterPlace | None,
) -> None:
    state = ARCHIVED if letter is None else ARCHIVING
    for batch, part in given_up:
        _change_now(in_flight, decision, batch, part, state, cause, letter)


class _Ends(NamedTuple):
    """How locks end at one time: the delivery limit, and the delays of records that stay below it."""

    limits: ShareLimits
    backoff: RetryBackoff
    now_ms: int


def _end_locks(
    in_flight: InFlight, decision: Decision, ended: list[RunInBatch], cause: Cause, ends: _Ends
) -> None:
    limits, backoff, now_ms = ends
    data_count = in_flight.control_runs.data_count
    decision.ended_lock_count = sum(data_count(run.first_offset, run.last_offset) for _, run in ended)
    ended = _without_overtaken(in_flight, ended, limits)
    for batch, run in ended:
        if limits.ends_after(run.delivery_count) and limits.letter_place is not None:
            letter = limits.letter_place._replace(reason=Cause.DELIVERY_LIMIT)
            _change_now(in_flight, decision, batch, run, ARCHIVING, Cause.DELIVERY_LIMIT, letter)
        elif limits.ends_after(run.delivery_count):
            _change_now(in_flight, decision, batch, run, ARCHIVED, Cause.DELIVERY_LIMIT)
        else:
            due = in_flight.due_times.after_failure(backoff, run.delivery_count, now_ms)
            _change_now(in_flight, decision, batch, run, AVAILABLE, cause, due)
            if due is None:
                decision.outcome = Outcome(released=True)
    for batch, run in ended:
        batch.join(run.first_offset, run.last_offset)


def _without_overtaken(in_flight: InFlight, ended: list[RunInBatch], limits: ShareLimits) -> list[RunInBatch]:
    """Takes back the records behind the ended ones of their keys; returns the runs that are left of these.

    The records behind may be among the ended ones, in the middle of a run. Taking them back cuts such a run:
    its object then covers the first piece alone, and may be available itself. So the runs are found again by
    their former bounds.
    """
    delivered_again = [
        (run.first_offset, run.last_offset) for _, run in ended if not limits.ends_after(run.delivery_count)
    ]
    taken_back = overtaken(in_flight, delivered_again)
    if not taken_back:
        return ended
    bounds = [(run.first_offset, run.last_offset) for _, run in ended]
    take_back(in_flight, taken_back)
    return [
        (batch, run)
        for first, last in bounds
        for batch, run in in_flight.runs_between(first, last)
        if run.state is ACQUIRED
    ]


def _change_now(
    in_flight: InFlight,
    decision: Decision,
    batch: InFlightBatch,
    run: InFlightRun,
    state: RecordState,
    cause: Cause,
    condition: Condition | None = None,
) -> None:
    """An immediate change: gives the run its state, and adds the change to the decision."""
    owner = run.owner
    keeps_key = state is not AVAILABLE and cause not in _SEEN_IN_THE_LOG
    in_flight.free(run, state, condition, keeps_key=keeps_key)
    if state is not AVAILABLE:
        run.pending, run.keeps_key = True, keeps_key
        decision.given_up_runs.append((batch, run))
    if state is ARCHIVING:
        assert condition is not None, (run.first_offset, state)
        decision.add_letter(run, condition)
    decision.add_change(run.first_offset, run.last_offset, state, run.delivery_count, cause, owner, condition)
