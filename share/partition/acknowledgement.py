"""Acknowledgements: a member accepts, releases, rejects or renews records that it holds (KIP-932, KIP-1222
for RENEW).

A request's batches for one partition take effect together or not at all. First, neighbours with one and the
same type are joined into one range, also across the control offsets between them, so that a client which
acknowledges record by record costs little more than one which acknowledges a range.

An acknowledgement in a producer's transaction is pending until that ends: counted at its commit, undone at
its abort. It is recorded as a condition of the record, so it survives a restart. In memory the record stays
held without an owner: it is not delivered, no member can acknowledge it, and its lock neither expires nor
ends with a share session. An abort releases the record, so its delivery counts, and the delivery limit and
the back-off hold as for any other release. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from operator import eq, gt, lt
from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, Condition, Due, PendingAcknowledgement
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import ProducerIdentity
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ACKNOWLEDGED_LETTER_CAUSES, ShareLimits
from barnabas.share.partition.overtaken import overtaken
from barnabas.share.partition.window import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Batch,
    Run,
    RunInBatch,
    Span,
    Window,
)

Segment: TypeAlias = tuple[int, int, int]
"""First and last offset, both inclusive, and the acknowledge type that holds for all between."""


class AcknowledgeType(IntEnum):
    """Kafka's acknowledge types; GAP is for an offset at which the client found no record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_RELEASE: Final = AcknowledgeType.RELEASE.value
_RENEW: Final = AcknowledgeType.RENEW.value
_RENEW_VERSION_MIN: Final = 2
_IN_TRANSACTION: Final = "A record is acknowledged in a transaction, whose end it waits for."
_TARGETS: Final = (ARCHIVED, ACKNOWLEDGED, AVAILABLE, ARCHIVED)
_CAUSES: Final = (Cause.GAP, Cause.ACCEPT, Cause.RELEASE, Cause.REJECT)


# Checks without the state.


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
    if set(map(len, types)) != {1}:  # most batches have one type
        for first_offset, last_offset, of_batch in batches:
            if len(of_batch) not in (1, last_offset - first_offset + 1):
                raise ApiError(ErrorCode.invalid_request, "The acknowledge types don't match the offsets.")
    type_max = _RENEW if version >= _RENEW_VERSION_MIN else _RENEW - 1
    for of_batch in set(types):
        if min(of_batch) < 0 or max(of_batch) > type_max:
            raise ApiError(ErrorCode.invalid_request, "There is no such acknowledge type.")
        if not is_renew_ack and _RENEW in of_batch:
            raise ApiError(ErrorCode.invalid_request, "RENEW is allowed in a renewing request only.")


def check_types(batches: Sequence[AckBatch]) -> None:
    """INVALID_REQUEST if a batch renews a lock: a lock that waits for a transaction does not run out."""
    if any(_RENEW in batch.types for batch in batches):
        raise ApiError(ErrorCode.invalid_request, "RENEW is not possible in a transaction.")


def _check_delays(delays: Sequence[ReleaseDelay], limits: ShareLimits) -> None:
    """Raises ApiError INVALID_REQUEST for delays out of order, and for one that the group does not allow."""
    are_ascending = all(delay.last_offset < after.first_offset for delay, after in pairwise(delays))
    if not are_ascending or any(delay.first_offset > delay.last_offset for delay in delays):
        raise ApiError(ErrorCode.invalid_request, "The delays of released records are out of order.")
    delay_max_ms = limits.retry_backoff.max_ms
    for delay in delays:
        if not 0 <= delay.delay_ms <= delay_max_ms:
            raise ApiError(
                ErrorCode.invalid_request,
                f"A delay of {delay.delay_ms} ms was asked for, and the group allows 0 to {delay_max_ms} ms: "
                "ask for a shorter one, or raise share.retry.backoff.max.ms.",
            )


# Acknowledgements that count at once.


def decide_batches(
    window: Window,
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
        _check_delays(delays, limits)
    decision = Decision()
    segments, error = _segments_of(window, batches)
    taken_back: Sequence[Span] = ()
    if window.keys is not None:
        taken_back = overtaken(window, _delivered_again(window, segments, limits))
    try:
        for segment in _without(segments, taken_back) if taken_back else segments:
            if segment[2] == _RENEW:
                _renew(window, member_id, segment, limits, now_ms)
            elif not delays:
                held = _take_held(window, member_id, segment)
                _decide_runs(window, decision, held, segment[2], member_id, limits, now_ms)
            else:
                for part, delay_ms in _by_delay(segment, delays):
                    held = _take_held(window, member_id, part)
                    _decide_runs(window, decision, held, part[2], member_id, limits, now_ms, delay_ms)
        if error is not None:
            raise without_frames(error)
    except ApiError:
        decision.withdraw()
        raise
    decision.acknowledged = segments
    if taken_back:
        decision.take_back(window.isolated(taken_back))
    return decision


def _segments_of(window: Window, batches: Sequence[AckBatch]) -> tuple[list[Segment], ApiError | None]:
    """The batches as ranges of one type at or above the SPSO, up to the first batch that is out of range.

    The error of that batch is returned with them, because the batches before it are checked first.
    """
    segments: list[Segment] = []
    spso, speo = window.spso, window.speo
    if len(batches) > 1 and batches[-1].last_offset < speo:
        whole = _as_one(window, batches)
        if whole is not None:
            return [whole], None
    next_data_offset = window.control_runs.next_data_offset
    for first_offset, last_offset, types in batches:
        if last_offset < spso:
            continue
        if last_offset >= speo:
            return segments, _out_of_range(window, first_offset)
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


def _as_one(window: Window, batches: Sequence[AckBatch]) -> Segment | None:
    """The batches as one range, if they have one type and only control offsets lie between them.

    A client acknowledges this way when it has acquired all records of a log with share state between the
    records.
    """
    firsts, lasts, types = zip(*batches, strict=True)
    if len(set(types)) > 1 or len(types[0]) > 1 or any(map(eq, firsts[1:], lasts)):
        return None
    named_count = sum(lasts) - sum(firsts) + len(batches)
    control_runs = window.control_runs
    if lasts[0] < window.spso or named_count != control_runs.data_count(firsts[0], lasts[-1]):
        return None
    if control_runs.is_any_in(firsts, lasts):  # Then as many records are left out.
        return None
    return max(firsts[0], window.spso), lasts[-1], types[0][0]


def _runs_of_types(first_offset: int, types: Sequence[int], spso: int) -> list[Segment]:
    """One type for each offset, as ranges of equal types."""
    segments: list[Segment] = []
    start = max(spso - first_offset, 0)
    for index in range(start + 1, len(types) + 1):
        if index == len(types) or types[index] != types[start]:
            segments.append((first_offset + start, first_offset + index - 1, types[start]))
            start = index
    return segments


def _out_of_range(window: Window, first_offset: int) -> ApiError:
    if not window.batches and first_offset >= window.spso:
        return ApiError(ErrorCode.invalid_record_state, "The offsets are not found in the cache.")
    return ApiError(ErrorCode.invalid_request, "The offsets are beyond the acquired records.")


def _delivered_again(window: Window, segments: Sequence[Segment], limits: ShareLimits) -> Iterator[Span]:
    """The parts of the released ranges that do not reach the delivery limit."""
    for first_offset, last_offset, ack_type in segments:
        if ack_type == _RELEASE:
            for _, run in window.runs_between(first_offset, last_offset):
                if not limits.ends_after(run.delivery_count):
                    yield max(run.first_offset, first_offset), min(run.last_offset, last_offset)


def _without(segments: Sequence[Segment], taken_back: Sequence[Span]) -> Iterator[Segment]:
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


def _by_delay(segment: Segment, delays: Sequence[ReleaseDelay]) -> Iterator[tuple[Segment, int | None]]:
    """The parts of a segment with the delay of each, in ms; None for offsets without one."""
    start, last_offset, acknowledge_type = segment
    for first, last, delay_ms in delays:
        if start <= last and first <= last_offset:
            if start < first:
                yield (start, first - 1, acknowledge_type), None
                start = first
            end = min(last, last_offset)
            yield (start, end, acknowledge_type), delay_ms
            start = end + 1
    if start <= last_offset:
        yield (start, last_offset, acknowledge_type), None


def _decide_runs(
    window: Window,
    decision: Decision,
    runs: Iterable[RunInBatch],
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
            condition = _due(window, run, delay_ms, limits, now_ms)
            decision.ahead_ms = window.due_times.ahead_ms
        decision.aim(batch, run, state, why, member_id, condition)


def _due(window: Window, run: Run, delay_ms: int | None, limits: ShareLimits, now_ms: int) -> Due | None:
    """When a released run is due: by the delay that the member asks for, or else by the group's back-off."""
    if delay_ms is None:
        return window.due_times.after_failure(limits.retry_backoff, run.delivery_count, now_ms)
    return window.due_times.after(delay_ms, now_ms)


def _renew(window: Window, member_id: str, segment: Segment, limits: ShareLimits, now_ms: int) -> None:
    deadline_ms = now_ms + limits.lock_duration_ms
    if not limits.renew_enabled:
        raise ApiError(ErrorCode.invalid_record_state, "The group doesn't allow to renew acquisition locks.")
    renewed = _take_held(window, member_id, segment)
    for _, run in renewed:
        run.lock_deadline_ms = deadline_ms
    for batch, run in renewed:
        batch.join(run.first_offset, run.last_offset)
    window.note_deadline(deadline_ms)


def _take_held(window: Window, member_id: str, segment: Segment) -> list[RunInBatch]:
    """The segment as runs of its own, which the member must hold; raises ApiError INVALID_RECORD_STATE if
    not.

    Control offsets at its ends are skipped, for any owner of the records beside them.
    """
    first_offset, last_offset, _ = segment
    batch, run = window.run_of(first_offset)
    if run.last_offset == last_offset and (
        run.first_offset == first_offset
        or run.first_offset == window.control_runs.previous_data_offset(first_offset - 1) + 1
    ):
        if run.state is not ACQUIRED or run.pending or run.owner != member_id:
            _check_held(run, member_id)
        return [(batch, run)]
    if len(window.control_runs):
        first_offset = window.control_runs.next_data_offset(first_offset)
        last_offset = window.control_runs.previous_data_offset(last_offset)
        if first_offset > last_offset:
            return []
    if run.first_offset <= first_offset and last_offset <= run.last_offset:
        held = [(batch, run)]
    else:
        held = list(window.runs_between(first_offset, last_offset))
    for _, run in held:
        _check_held(run, member_id)
    batch, run = held[0]
    if first_offset > run.first_offset:
        part = batch.isolate(batch.run_index(first_offset), window.boundary(first_offset), last_offset)
        held[0] = (batch, part)
    batch, run = held[-1]
    if last_offset < run.last_offset:
        batch.isolate(batch.run_index(last_offset), run.first_offset, last_offset)
    return held


def _check_held(run: Run, member_id: str) -> None:
    if run.state is not ACQUIRED:
        raise ApiError(ErrorCode.invalid_record_state, "A record is not acquired.")
    if run.pending:
        raise ApiError(ErrorCode.invalid_record_state, "Another change of a record is being recorded.")
    if run.owner != member_id:
        message = "A record is held by another member." if run.condition is None else _IN_TRANSACTION
        raise ApiError(ErrorCode.invalid_record_state, message)


# Acknowledgements in transactions.


class TransactionEnd(NamedTuple):
    """The outcome of the transaction of a producer, whose older epochs it ends as well."""

    producer: ProducerIdentity
    commit: bool

    def ends(self, pending: PendingAcknowledgement) -> bool:
        """Whether the acknowledgement belongs to the transaction."""
        producer_id, producer_epoch = self.producer
        return pending.producer_id == producer_id and pending.producer_epoch <= producer_epoch

    def type_of(self, pending: PendingAcknowledgement) -> int:
        """The type that counts in the end."""
        return pending.acknowledge_type if self.commit else _RELEASE


def decide_pending(
    window: Window, member_id: str, batches: Sequence[AckBatch], producer: ProducerIdentity
) -> Decision:
    """The batches, validated and without RENEW, wait for the producer's transaction: all or none.

    Raises the errors of `decide_batches`.
    """
    decision = Decision()
    segments, error = _segments_of(window, batches)
    try:
        for segment in segments:
            pending = PendingAcknowledgement(*producer, segment[2], member_id)
            for batch, run in _take_held(window, member_id, segment):
                decision.keep_held(batch, run, pending)
        if error is not None:
            raise without_frames(error)
    except ApiError:
        decision.withdraw()
        raise
    return decision


def decide_end(window: Window, end: TransactionEnd, limits: ShareLimits, now_ms: int) -> Decision:
    """Gives effect to the end of a transaction; the decision is empty if nothing waits for it."""
    decision = Decision()
    ended = [(batch, run, pending) for batch, run, pending in pending_runs(window) if end.ends(pending)]
    released = [
        (run.first_offset, run.last_offset)
        for _, run, pending in ended
        if end.type_of(pending) == _RELEASE and not limits.ends_after(run.delivery_count)
    ]
    taken_back = overtaken(window, released)
    for batch, run, pending in ended:
        _decide_runs(window, decision, [(batch, run)], end.type_of(pending), pending.member, limits, now_ms)
    if end.commit:
        decision.acknowledged = [
            (run.first_offset, run.last_offset, pending.acknowledge_type) for _, run, pending in ended
        ]
    decision.take_back(window.isolated(taken_back))
    return decision


def pending_runs(window: Window) -> Iterator[tuple[Batch, Run, PendingAcknowledgement]]:
    """The runs that wait for a transaction, ascending, without those whose end is being recorded."""
    for batch, run in window.runs_between(window.spso, window.speo):
        if not run.pending and isinstance(run.condition, PendingAcknowledgement):
            yield batch, run, run.condition
