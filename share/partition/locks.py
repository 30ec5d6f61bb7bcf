"""The ends of acquisition locks: expiry, the end of a share session, records that are gone from the log, and
changes by an administrator.

KIP-932, "Acquisition locks" and "Share sessions". These changes are immediate (see `decision`): a released
record is available at once, or waits until it is due (`waits`); an archived one is final at once, although
the SPSO passes it, and its key is free, only after that is recorded. There is no timer per record: one lower
bound of the deadlines, and a scan of the bounded window when it is reached. Pure.

A member that ends its session has not failed, so its records do not wait. A session that ends with its
connection counts like an expired lock: the consumer may have died of the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.delivery_state import (
    Cause,
    Due,
    LetterPlace,
    PendingAcknowledgement,
    RecordState,
    is_final,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_inspection import ALTERED_OFFSETS_MAX, RecordAction
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.limits import NO_BACKOFF, RetryBackoff, ShareLimits
from barnabas.share.partition.overtaken import overtaken
from barnabas.share.partition.window import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Run,
    RunInBatch,
    Span,
    Window,
)

Range = tuple[int, int, int]
"""First offset, last offset (inclusive) and delivery count."""

_NO_LIMIT = ShareLimits(delivery_count_max=1 << 31)


class HeldLock(NamedTuple):
    """The locks of neighbouring records of one member."""

    member_id: str
    record_count: int
    acquired_ms: int
    """Monotonic. A renewal leaves it."""


class _Ends(NamedTuple):
    """How locks end at one time: the delivery limit, and the delays of records that stay below it."""

    limits: ShareLimits
    backoff: RetryBackoff
    now_ms: int


# What members hold.


def held_locks(window: Window) -> Iterator[HeldLock]:
    """In the order of offsets. The share-partition must not change before the last one is taken."""
    if window.deadline_from_ms is None:
        return  # without a deadline there is no lock
    for _, run in window.all_runs():
        if run.state is ACQUIRED and run.owner is not None:
            record_count = window.control_runs.data_count(run.first_offset, run.last_offset)
            yield HeldLock(run.owner, record_count, run.acquired_ms)


def held_ranges(window: Window, member_id: str, acquired: Sequence[Range]) -> list[Range]:
    """The parts of the acquired ranges that the member still holds from that delivery, ascending.

    Records whose acknowledgement is being recorded are left out.
    """
    held: list[Range] = []
    for acquired_from, acquired_to, delivery_count in acquired:
        first_offset = max(acquired_from, window.spso)
        last_offset = min(acquired_to, window.speo - 1)
        if first_offset > last_offset:
            continue
        may_join = False
        for _, run in window.runs_between(first_offset, last_offset):
            is_held = run.state is ACQUIRED and run.owner == member_id and not run.pending
            if not is_held or run.delivery_count != delivery_count:
                may_join = False
                continue
            first, last = max(run.first_offset, first_offset), min(run.last_offset, last_offset)
            if may_join:
                held[-1] = (held[-1][0], last, delivery_count)
            else:
                held.append((first, last, delivery_count))
            may_join = True
    return held


# The ends of locks.


def expire_locks(window: Window, limits: ShareLimits, now_ms: int) -> Decision:
    """Ends the locks whose deadline has passed, and makes the bound of the others exact. A record whose
    acknowledgement waits for a transaction has no deadline.
    """
    decision = Decision()
    if window.deadline_from_ms is None or now_ms < window.deadline_from_ms:
        return decision
    ended: list[RunInBatch] = []
    window.deadline_from_ms = None
    for batch, run in window.all_runs():
        if run.state is not ACQUIRED or run.pending or run.condition is not None:
            continue
        if run.lock_deadline_ms <= now_ms:
            ended.append((batch, run))
        else:
            window.note_deadline(run.lock_deadline_ms)
    _end_locks(window, decision, ended, Cause.LOCK_EXPIRED, _Ends(limits, limits.retry_backoff, now_ms))
    return decision


def release_member(
    window: Window, member_id: str, limits: ShareLimits, now_ms: int, *, is_clean: bool
) -> Decision:
    """Ends the member's locks. A lock on a record whose acknowledgement is being recorded ends if
    that fails, like an expired one.

    `is_clean` means that the member itself, or an administrator, has ended the session.
    """
    decision = Decision()
    ended: list[RunInBatch] = []
    for batch, run in window.all_runs():
        if run.owner != member_id:
            continue
        if run.pending:
            run.lock_deadline_ms = now_ms
        else:
            ended.append((batch, run))
    backoff = NO_BACKOFF if is_clean else limits.retry_backoff
    _end_locks(window, decision, ended, Cause.SESSION_ENDED, _Ends(limits, backoff, now_ms))
    return decision


def _end_locks(
    window: Window, decision: Decision, ended: list[RunInBatch], cause: Cause, ends: _Ends
) -> None:
    limits, backoff, now_ms = ends
    data_count = window.control_runs.data_count
    decision.ended_lock_count = sum([data_count(run.first_offset, run.last_offset) for _, run in ended])
    if window.keys is not None:
        ended = _without_overtaken(window, ended, limits)
    for batch, run in ended:
        if not limits.ends_after(run.delivery_count):
            due = window.due_times.after_failure(backoff, run.delivery_count, now_ms)
            decision.change_now(window, batch, run, AVAILABLE, cause, due)
            if due is None:
                decision.outcome = Outcome(released=True)
        elif limits.letter_place is not None:
            letter = limits.letter_place._replace(reason=Cause.DELIVERY_LIMIT)
            decision.change_now(window, batch, run, ARCHIVING, Cause.DELIVERY_LIMIT, letter)
        else:
            decision.change_now(window, batch, run, ARCHIVED, Cause.DELIVERY_LIMIT)
    for batch, run in ended:
        batch.join(run.first_offset, run.last_offset)


def _without_overtaken(window: Window, ended: list[RunInBatch], limits: ShareLimits) -> list[RunInBatch]:
    """Takes back the records behind the ended ones of their keys; returns the runs that are left of these.

    The records behind may be among the ended ones, in the middle of a run. Taking them back cuts such a run:
    its object then covers the first piece alone, and may be available itself. So the runs are found again by
    their former bounds.
    """
    delivered_again = [
        (run.first_offset, run.last_offset) for _, run in ended if not limits.ends_after(run.delivery_count)
    ]
    taken_back = overtaken(window, delivered_again)
    if not taken_back:
        return ended
    bounds = [(run.first_offset, run.last_offset) for _, run in ended]
    window.take_back(taken_back)
    return [
        (batch, run)
        for first, last in bounds
        for batch, run in window.runs_between(first, last)
        if run.state is ACQUIRED
    ]


# Records that no member gets any more.


def archive(
    window: Window,
    decision: Decision,
    first_offset: int,
    last_offset: int,
    was: RecordState,
    cause: Cause,
) -> None:
    """Archives the records of the range (data offsets) that are in state `was`.

    That must not be ACQUIRED for records acquired before this call: a change of theirs may be pending.
    """
    for batch, run in window.parts(first_offset, last_offset, lambda run: run.state is was):
        decision.change_now(window, batch, run, ARCHIVED, cause)


def archive_unheld(
    window: Window,
    decision: Decision,
    first_offset: int,
    last_offset: int,
    cause: Cause,
    letter: LetterPlace | None,
) -> None:
    """Archives the records of the range that no member holds, also those that wait until they are due, or
    sends them on their way to dead letters, if these have a place.
    """
    window.take_out_of_unread(first_offset, last_offset)
    unheld = window.parts(first_offset, last_offset, _is_unheld)
    place = None if letter is None else letter._replace(reason=cause)
    _give_up(window, decision, unheld, cause, place)


def _is_unheld(run: Run) -> bool:
    return run.state is AVAILABLE and (run.condition is None or isinstance(run.condition, Due))


def _give_up(
    window: Window,
    decision: Decision,
    given_up: Iterable[RunInBatch],
    cause: Cause,
    letter: LetterPlace | None,
) -> None:
    state = ARCHIVED if letter is None else ARCHIVING
    for batch, run in given_up:
        decision.change_now(window, batch, run, state, cause, letter)


# Changes by an administrator: all records of a request, or none of them. The member that held a record gets
# an error for its acknowledgement. The control record has the cause ADMIN, and names that member.

_ALTERABLE = {
    RecordAction.RELEASE: (ACQUIRED,),
    RecordAction.ARCHIVE: (AVAILABLE, ACQUIRED),
    RecordAction.DEAD_LETTER: (AVAILABLE, ACQUIRED),
}
"""The states in which a record can be changed."""


def administer(
    window: Window, action: RecordAction, first_offset: int, last_offset: int, limits: ShareLimits
) -> Decision:
    """Changes all records of the range, both ends inclusive; in force immediately.

    ApiError, changing nothing: INVALID_REQUEST for a range that is malformed, too long or without a record;
    INVALID_RECORD_STATE if a record is final, new or being changed, or if no member holds one to release;
    INVALID_CONFIG for dead letters of a group that has none.
    """
    first_offset, last_offset = _records_of(window, first_offset, last_offset)
    for _, run in window.runs_between(first_offset, last_offset):
        if run.pending or run.state not in _ALTERABLE[action] or _is_in_transaction(run):
            offset = max(window.control_runs.next_data_offset(run.first_offset), first_offset)
            raise ApiError(ErrorCode.invalid_record_state, _refusal(run, offset))
    decision = Decision()
    if action is RecordAction.RELEASE:
        held = window.parts(first_offset, last_offset, lambda run: run.state is ACQUIRED)
        _end_locks(window, decision, held, Cause.ADMIN, _Ends(_NO_LIMIT, NO_BACKOFF, 0))
        return decision
    letter = _letter_place(limits) if action is RecordAction.DEAD_LETTER else None
    window.take_out_of_unread(first_offset, last_offset)
    _give_up(window, decision, window.parts(first_offset, last_offset, _is_open), Cause.ADMIN, letter)
    return decision


def _letter_place(limits: ShareLimits) -> LetterPlace:
    if limits.letter_place is None:
        message = "The group has no dead letters: set errors.deadletterqueue.topic.name, or archive records."
        raise ApiError(ErrorCode.invalid_config, message)
    return limits.letter_place._replace(reason=Cause.ADMIN)


def _records_of(window: Window, first_offset: int, last_offset: int) -> Span:
    """The first and the last record of the range."""
    if not 0 <= first_offset <= last_offset:
        raise ApiError(
            ErrorCode.invalid_request, f"The offsets from {first_offset} to {last_offset} are no range."
        )
    if last_offset - first_offset >= ALTERED_OFFSETS_MAX:
        message = f"A request can change {ALTERED_OFFSETS_MAX} offsets, not {last_offset - first_offset + 1}."
        raise ApiError(ErrorCode.invalid_request, message)
    if first_offset < window.spso:
        message = (
            f"The record at {first_offset} is final: it lies before the group's start offset {window.spso}."
        )
        raise ApiError(ErrorCode.invalid_record_state, message)
    if last_offset >= window.speo:
        new_offset = max(first_offset, window.speo, 0)
        message = (
            f"The group has not acquired the record at {new_offset} yet, so there is no state to change."
        )
        raise ApiError(ErrorCode.invalid_record_state, message)
    first = window.control_runs.next_data_offset(first_offset)
    if first > last_offset:
        message = f"The offsets from {first_offset} to {last_offset} have no record."
        raise ApiError(ErrorCode.invalid_request, message)
    return first, window.control_runs.previous_data_offset(last_offset)


def _is_open(run: Run) -> bool:
    return run.state is AVAILABLE or run.state is ACQUIRED


def _is_in_transaction(run: Run) -> bool:
    """Whether its acknowledgement waits for the end of a transaction."""
    return isinstance(run.condition, PendingAcknowledgement)


def _refusal(run: Run, offset: int) -> str:
    if is_final(run.state):
        return f"The record at {offset} is final: it is {run.state.name.lower()}."
    if run.pending:
        return f"Another change of the record at {offset} is being recorded: try again."
    if run.state is ARCHIVING:
        return f"The record at {offset} is on its way to a dead letter."
    if run.state is ACQUIRED:
        return f"The record at {offset} is acknowledged in a transaction, whose end it waits for."
    return f"The record at {offset} is {run.state.name.lower()}, so no member holds it."
