"""Acknowledgements: a member accepts, releases, rejects or renews records that it holds (KIP-932, KIP-1222
for RENEW).

A request's batches for one partition take effect together or not at all. First, neighbours with one and the
same type are joined into one range, also across the control offsets between them, so that a client which
acknowledges record by record costs little more than one which acknowledges a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from operator import eq, gt, lt

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, Condition, Due
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.share.partition.decision import Decision, Target
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
)
from barnabas.share.partition.limits import ACKNOWLEDGED_LETTER_CAUSES, ShareLimits
from barnabas.share.partition.overtaken import give_back, isolated, overtaken
from barnabas.share.partition.release_delays import Segment, by_delay, check_delays


class AcknowledgeType(IntEnum):
    """Kafka's acknowledge types; GAP is for an offset at which the client found no record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_RENEW = AcknowledgeType.RENEW.value
_RENEW_VERSION_MIN = 2
_IN_TRANSACTION = "A record is acknowledged in a transaction, whose end it waits for."
_TARGETS = (ARCHIVED, ACKNOWLEDGED, AVAILABLE, ARCHIVED)
_CAUSES = (Cause.GAP, Cause.ACCEPT, Cause.RELEASE, Cause.REJECT)


def validate_acknowledgement_batches(
    batches: Sequence[AckBatch], *, version: int, is_renew_ack: bool
) -> None:
    """Checks one partition's batches as far as possible without its state; raises ApiError INVALID_REQUEST.

    `version` is that of ShareFetch or ShareAcknowledge, which know the same types in the same version.
    """
    if not batches:
        return
    firsts, lasts, types = zip(*batches, strict=True)
    if any(map(gt, firsts, lasts)) or any(map(lt, firsts[1:], lasts)):
        raise ApiError(ErrorCode.invalid_request, "The acknowledgement batches are out of order.")
    if not _types_fit(batches):
        raise ApiError(ErrorCode.invalid_request, "The acknowledge types don't match the offsets.")
    type_max = _RENEW if version >= _RENEW_VERSION_MIN else _RENEW - 1
    for of_batch in set(types):
        if min(of_batch) < 0 or max(of_batch) > type_max:
            raise ApiError(ErrorCode.invalid_request, "There is no such acknowledge type.")
        if not is_renew_ack and _RENEW in of_batch:
            raise ApiError(ErrorCode.invalid_request, "RENEW is allowed in a renewing request only.")


def _types_fit(batches: Sequence[AckBatch]) -> bool:
    """Whether each batch has one type, as most have, or one for each offset."""
    if {len(batch.types) for batch in batches} == {1}:
        return True
    return all(len(types) in (1, last - first + 1) for first, last, types in batches)


def decide_batches(
    in_flight: InFlight,
    member_id: str,
    batches: Sequence[AckBatch],
    limits: ShareLimits,
    now_ms: int,
    delays: Sequence[ReleaseDelay] = (),
) -> Decision:
    """Decides on validated batches, all or none: ApiError INVALID_RECORD_STATE or INVALID_REQUEST.

    RENEW takes effect at once, also if a later batch fails, and isn't recorded. A released record waits as
    long as its delay says, or else as the group's back-off says.
    """
    if delays:
        check_delays(delays, limits)
    decision = Decision()
    segments, error = segments_of(in_flight, batches)
    taken_back: Sequence[tuple[int, int]] = ()
    if in_flight.key_order is not None:
        taken_back = overtaken(in_flight, _delivered_again(in_flight, segments, limits))
    try:
        for segment in _without(segments, taken_back) if taken_back else segments:
            if segment[2] == _RENEW:
                _renew(in_flight, member_id, segment, limits, now_ms)
            elif not delays:
                held = take_held(in_flight, member_id, segment)
                decide_runs(in_flight, decision, held, segment[2], member_id, limits, now_ms)
            else:
                for part, delay_ms in by_delay(segment, delays):
                    held = take_held(in_flight, member_id, part)
                    decide_runs(in_flight, decision, held, part[2], member_id, limits, now_ms, delay_ms)
        if error is not None:
            raise without_frames(error)
    except ApiError:
        withdraw(decision)
        raise
    decision.acknowledged = segments
    if taken_back:
        decision.taken_back = isolated(in_flight, taken_back)
        for _, run in decision.taken_back:
            run.pending = True
    return decision


def withdraw(decision: Decision) -> None:
    """Leaves the records that the decision would have changed as they were."""
    for target in decision.targets:
        target.run.pending = False
    for _, run in decision.taken_back:
        run.pending = False
    _join(decision)


def carry_out(in_flight: InFlight, decision: Decision) -> bool:
    """Gives the recorded states to the records; whether some have become available."""
    released = False
    for _, run, state, condition in decision.targets:
        if state is ACQUIRED:
            run.free(state, condition)  # held until its transaction ends
        elif isinstance(condition, Due):
            in_flight.free(run, state, _by_present_clock(in_flight, decision, condition))
        else:
            in_flight.free(run, state, condition)
        run.pending = False
        released |= state is AVAILABLE and condition is None
    for batch, run in decision.taken_back:
        give_back(in_flight, run)
        run.pending = False
        batch.join(run.first_offset, run.last_offset)
    _join(decision)
    return released


def _by_present_clock(in_flight: InFlight, decision: Decision, due: Due) -> Due:
    """The due time in memory if the wall clock was set while the decision was being recorded; see
    `waits.follow_wall_clock`.
    """
    return Due(due.due_ms + in_flight.due_times.ahead_ms - decision.ahead_ms)


def _join(decision: Decision) -> None:
    """Joins runs that have become alike: once for each batch, whose runs lie together in the decision."""
    position = 0
    targets = decision.targets
    while position < len(targets):
        batch, first_run, *_ = targets[position]
        last_run = first_run
        while position < len(targets) and targets[position].batch is batch:
            last_run = targets[position].run
            position += 1
        batch.join(first_run.first_offset, last_run.last_offset)


def segments_of(in_flight: InFlight, batches: Sequence[AckBatch]) -> tuple[list[Segment], ApiError | None]:
    """The batches as ranges of one type at or above the SPSO, up to the first batch that is out of range.

    The error of that batch is returned with them, because the batches before it are checked first.
    """
    segments: list[Segment] = []
    spso, speo = in_flight.spso, in_flight.speo
    if len(batches) > 1 and batches[-1].last_offset < speo:
        whole = _as_one(in_flight, batches)
        if whole is not None:
            return [whole], None
    next_data_offset = in_flight.control_runs.next_data_offset
    for first_offset, last_offset, types in batches:
        if last_offset < spso:
            continue
        if last_offset >= speo:
            return segments, _out_of_range(in_flight, first_offset)
        if len(types) == 1:
            pieces = [(max(first_offset, spso), last_offset, types[0])]
        else:
            pieces = _runs_of_types(first_offset, types, spso)
        for piece in pieces:
            if segments:
                first, last, ack_type = segments[-1]
                if piece[2] == ack_type and last < piece[0] <= next_data_offset(last + 1):
                    segments[-1] = (first, piece[1], ack_type)
                    continue
            segments.append(piece)
    return segments, None


def _as_one(in_flight: InFlight, batches: Sequence[AckBatch]) -> Segment | None:
    """The batches as one range, if they have one type and only control offsets lie between them.

    A client acknowledges this way when it has acquired all records of a log with share state between the
    records.
    """
    firsts, lasts, types = zip(*batches, strict=True)
    if len(set(types)) > 1 or len(types[0]) > 1 or any(map(eq, firsts[1:], lasts)):
        return None
    named_count = sum(lasts) - sum(firsts) + len(batches)
    control_runs = in_flight.control_runs
    if lasts[0] < in_flight.spso or named_count != control_runs.data_count(firsts[0], lasts[-1]):
        return None
    if control_runs.is_any_in(firsts, lasts):  # Then as many records are left out.
        return None
    return max(firsts[0], in_flight.spso), lasts[-1], types[0][0]


def _delivered_again(
    in_flight: InFlight, segments: Sequence[Segment], limits: ShareLimits
) -> Iterator[tuple[int, int]]:
    """The parts of the released ranges that do not reach the delivery limit."""
    for first_offset, last_offset, ack_type in segments:
        if ack_type == AcknowledgeType.RELEASE:
            for _, run in in_flight.runs_between(first_offset, last_offset):
                if not limits.ends_after(run.delivery_count):
                    yield max(run.first_offset, first_offset), min(run.last_offset, last_offset)


def _without(segments: Sequence[Segment], taken_back: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    """The segments without these ascending ranges: they count as released, with any type."""
    for first_offset, last_offset, ack_type in segments:
        start = first_offset
        for first, last in taken_back:
            if start <= last and first <= last_offset:
                if start < first:
                    yield start, first - 1, ack_type
                start = last + 1
        if start <= last_offset:
            yield start, last_offset, ack_type


def _out_of_range(in_flight: InFlight, first_offset: int) -> ApiError:
    if not in_flight.batches and first_offset >= in_flight.spso:
        return ApiError(ErrorCode.invalid_record_state, "The offsets are not found in the cache.")
    return ApiError(ErrorCode.invalid_request, "The offsets are beyond the acquired records.")


def _runs_of_types(first_offset: int, types: Sequence[int], spso: int) -> list[Segment]:
    """One type for each offset, as ranges of equal types."""
    segments: list[Segment] = []
    start = max(spso - first_offset, 0)
    for index in range(start + 1, len(types) + 1):
        if index == len(types) or types[index] != types[start]:
            segments.append((first_offset + start, first_offset + index - 1, types[start]))
            start = index
    return segments


def decide_runs(
    in_flight: InFlight,
    decision: Decision,
    runs: Iterable[tuple[InFlightBatch, InFlightRun]],
    ack_type: int,
    member_id: str,
    limits: ShareLimits,
    now_ms: int,
    delay_ms: int | None = None,
) -> None:
    """Adds the states that an acknowledgement of one type, not RENEW, gives to these runs. `delay_ms` is the
    delay that the member has asked for.
    """
    target = _TARGETS[ack_type]
    cause = _CAUSES[ack_type]
    for batch, run in runs:
        state, why = target, cause
        condition: Condition | None = None
        if target is AVAILABLE and limits.ends_after(run.delivery_count):
            state, why = ARCHIVED, Cause.DELIVERY_LIMIT
        if limits.letter_place is not None and why in ACKNOWLEDGED_LETTER_CAUSES:
            state, condition = ARCHIVING, limits.letter_place._replace(reason=why)
            decision.add_letter(run, condition)
        elif state is AVAILABLE:
            condition = _due(in_flight, run, delay_ms, limits, now_ms)
            decision.ahead_ms = in_flight.due_times.ahead_ms
        run.pending = True
        decision.targets.append(Target(batch, run, state, condition))
        decision.add_change(
            run.first_offset, run.last_offset, state, run.delivery_count, why, member_id, condition
        )


def _due(
    in_flight: InFlight, run: InFlightRun, delay_ms: int | None, limits: ShareLimits, now_ms: int
) -> Due | None:
    """When a released run is due: by the delay that the member asks for, or else by the group's back-off."""
    if delay_ms is None:
        return in_flight.due_times.after_failure(limits.retry_backoff, run.delivery_count, now_ms)
    return in_flight.due_times.after(delay_ms, now_ms)


def _renew(in_flight: InFlight, member_id: str, segment: Segment, limits: ShareLimits, now_ms: int) -> None:
    deadline_ms = now_ms + limits.lock_duration_ms
    if not limits.renew_enabled:
        raise ApiError(ErrorCode.invalid_record_state, "The group doesn't allow to renew acquisition locks.")
    renewed = take_held(in_flight, member_id, segment)
    for _, run in renewed:
        run.lock_deadline_ms = deadline_ms
    for batch, run in renewed:
        batch.join(run.first_offset, run.last_offset)
    in_flight.note_deadline(deadline_ms)


def take_held(
    in_flight: InFlight, member_id: str, segment: Segment
) -> list[tuple[InFlightBatch, InFlightRun]]:
    """The segment as runs of its own, which the member must hold; raises ApiError INVALID_RECORD_STATE if
    not.

    Control offsets at its ends are skipped, for any owner of the records beside them.
    """
    first_offset, last_offset, _ = segment
    batch, run = in_flight.run_of(first_offset)
    if run.last_offset == last_offset and run.first_offset == in_flight.boundary(first_offset):
        _check_held(run, member_id)
        return [(batch, run)]
    if len(in_flight.control_runs):
        first_offset = in_flight.control_runs.next_data_offset(first_offset)
        last_offset = in_flight.control_runs.previous_data_offset(last_offset)
        if first_offset > last_offset:
            return []
    if run.first_offset <= first_offset and last_offset <= run.last_offset:
        held = [(batch, run)]
    else:
        held = list(in_flight.runs_between(first_offset, last_offset))
    for _, run in held:
        _check_held(run, member_id)
    batch, run = held[0]
    if first_offset > run.first_offset:
        part = batch.isolate(batch.run_index(first_offset), in_flight.boundary(first_offset), last_offset)
        held[0] = (batch, part)
    batch, run = held[-1]
    if last_offset < run.last_offset:
        batch.isolate(batch.run_index(last_offset), run.first_offset, last_offset)
    return held


def _check_held(run: InFlightRun, member_id: str) -> None:
    if run.state is not ACQUIRED:
        raise ApiError(ErrorCode.invalid_record_state, "A record is not acquired.")
    if run.pending:
        raise ApiError(ErrorCode.invalid_record_state, "Another change of a record is being recorded.")
    if run.owner != member_id:
        message = "A record is held by another member." if run.condition is None else _IN_TRANSACTION
        raise ApiError(ErrorCode.invalid_record_state, message)
