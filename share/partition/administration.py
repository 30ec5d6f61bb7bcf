"""Changes by an administrator: records are released, archived or dead-lettered. Pure.

Like the other ends of locks (`locks`), these changes are immediate (see `decision`). A request changes all of
its records, or none of them. The member that held a record gets an error for its acknowledgement. The control
record has the cause ADMIN, and names that member.
"""

from __future__ import annotations

from barnabas.protocol.delivery_state import Cause, LetterPlace, PendingAcknowledgement, is_final
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_inspection import ALTERED_OFFSETS_MAX, RecordAction
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, ARCHIVING, AVAILABLE, InFlightRun
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.locks import give_up, release
from barnabas.share.partition.unread_batches import take_out_of_unread

_ALTERABLE = {
    RecordAction.RELEASE: (ACQUIRED,),
    RecordAction.ARCHIVE: (AVAILABLE, ACQUIRED),
    RecordAction.DEAD_LETTER: (AVAILABLE, ACQUIRED),
}
"""The states in which a record can be changed."""


def administer(
    in_flight: InFlight, action: RecordAction, first_offset: int, last_offset: int, limits: ShareLimits
) -> Decision:
    """Changes all records of the range, both ends inclusive; in force immediately.

    ApiError, changing nothing: INVALID_REQUEST for a range that is malformed, too long or without a record;
    INVALID_RECORD_STATE if a record is final, new or being changed, or if no member holds one to release;
    INVALID_CONFIG for dead letters of a group that has none.
    """
    first_offset, last_offset = _records_of(in_flight, first_offset, last_offset)
    _check_states(in_flight, action, first_offset, last_offset)
    decision = Decision()
    if action is RecordAction.RELEASE:
        release(in_flight, decision, first_offset, last_offset, Cause.ADMIN)
        return decision
    letter = _letter_place(limits) if action is RecordAction.DEAD_LETTER else None
    take_out_of_unread(in_flight, first_offset, last_offset)
    give_up(in_flight, decision, first_offset, last_offset, Cause.ADMIN, letter)
    return decision


def _letter_place(limits: ShareLimits) -> LetterPlace:
    if limits.letter_place is None:
        message = "The group has no dead letters: set errors.deadletterqueue.topic.name, or archive records."
        raise ApiError(ErrorCode.invalid_config, message)
    return limits.letter_place._replace(reason=Cause.ADMIN)


def _records_of(in_flight: InFlight, first_offset: int, last_offset: int) -> tuple[int, int]:
    """The first and the last record of the range."""
    if not 0 <= first_offset <= last_offset:
        raise ApiError(
            ErrorCode.invalid_request, f"The offsets from {first_offset} to {last_offset} are no range."
        )
    if last_offset - first_offset >= ALTERED_OFFSETS_MAX:
        message = f"A request can change {ALTERED_OFFSETS_MAX} offsets, not {last_offset - first_offset + 1}."
        raise ApiError(ErrorCode.invalid_request, message)
    if first_offset < in_flight.spso:
        raise ApiError(ErrorCode.invalid_record_state, _passed(first_offset, in_flight.spso))
    if last_offset >= in_flight.speo:
        new_offset = max(first_offset, in_flight.speo, 0)
        raise ApiError(ErrorCode.invalid_record_state, _new(new_offset))
    first = in_flight.control_runs.next_data_offset(first_offset)
    if first > last_offset:
        message = f"The offsets from {first_offset} to {last_offset} have no record."
        raise ApiError(ErrorCode.invalid_request, message)
    return first, in_flight.control_runs.previous_data_offset(last_offset)


def _passed(offset: int, start_offset: int) -> str:
    return f"The record at {offset} is final: it lies before the group's start offset {start_offset}."


def _new(offset: int) -> str:
    return f"The group has not acquired the record at {offset} yet, so there is no state to change."


def _check_states(in_flight: InFlight, action: RecordAction, first_offset: int, last_offset: int) -> None:
    alterable = _ALTERABLE[action]
    for _, run in in_flight.runs_between(first_offset, last_offset):
        if run.pending or run.state not in alterable or _is_in_transaction(run):
            offset = max(in_flight.control_runs.next_data_offset(run.first_offset), first_offset)
            raise ApiError(ErrorCode.invalid_record_state, _refusal(run, offset))


def _is_in_transaction(run: InFlightRun) -> bool:
    """Whether its acknowledgement waits for the end of a transaction."""
    return isinstance(run.condition, PendingAcknowledgement)


def _refusal(run: InFlightRun, offset: int) -> str:
    if is_final(run.state):
        return f"The record at {offset} is final: it is {run.state.name.lower()}."
    if run.pending:
        return f"Another change of the record at {offset} is being recorded: try again."
    if run.state is ARCHIVING:
        return f"The record at {offset} is on its way to a dead letter."
    if run.state is ACQUIRED:
        return f"The record at {offset} is acknowledged in a transaction, whose end it waits for."
    return f"The record at {offset} is {run.state.name.lower()}, so no member holds it."
