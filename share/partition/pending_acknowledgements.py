"""Acknowledgements in a producer's transaction: pending until it ends, counted at its commit, undone at its
abort. Pure.

A pending acknowledgement is recorded as a condition of the record, so it survives a restart. In memory the
record stays held without an owner: it is not delivered, no member can acknowledge it, and its lock neither
expires nor ends with a share session. An abort releases the record, so its delivery counts, and the delivery
limit and the back-off hold as for any other release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, PendingAcknowledgement
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import ProducerIdentity
from barnabas.share.partition.acknowledgement import (
    AcknowledgeType,
    decide_runs,
    segments_of,
    take_held,
    withdraw,
)
from barnabas.share.partition.decision import Decision, Target
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED, AVAILABLE, InFlightBatch, InFlightRun
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.overtaken import isolated, overtaken


class TransactionEnd(NamedTuple):
    """The outcome of the transaction of a producer, whose older epochs it ends as well."""

    producer: ProducerIdentity
    commit: bool

    def ends(self, pending: PendingAcknowledgement) -> bool:
        """Whether the acknowledgement belongs to the transaction."""
        producer_id, producer_epoch = self.producer
        return pending.producer_id == producer_id and pending.producer_epoch <= producer_epoch


def decide_pending(
    in_flight: InFlight, member_id: str, batches: Sequence[AckBatch], producer: ProducerIdentity
) -> Decision:
    """The batches, validated and without RENEW, wait for the producer's transaction: all or none.

    Raises the errors of `acknowledgement.decide_batches`.
    """
    decision = Decision()
    segments, error = segments_of(in_flight, batches)
    try:
        for segment in segments:
            pending = PendingAcknowledgement(*producer, segment[2], member_id)
            for batch, run in take_held(in_flight, member_id, segment):
                run.pending = True
                decision.targets.append(Target(batch, run, ACQUIRED, pending))
                decision.add_change(
                    run.first_offset,
                    run.last_offset,
                    AVAILABLE,
                    run.delivery_count,
                    Cause.NONE,
                    member_id,
                    pending,
                )
        if error is not None:
            raise without_frames(error)
    except ApiError:
        withdraw(decision)
        raise
    return decision


def check_types(batches: Sequence[AckBatch]) -> None:
    """INVALID_REQUEST if a batch renews a lock: a lock that waits for a transaction does not run out."""
    if any(AcknowledgeType.RENEW in batch.types for batch in batches):
        raise ApiError(ErrorCode.invalid_request, "RENEW is not possible in a transaction.")


def decide_end(in_flight: InFlight, end: TransactionEnd, limits: ShareLimits, now_ms: int) -> Decision:
    """Gives effect to the end of a transaction; the decision is empty if nothing waits for it."""
    decision = Decision()
    ended = [(batch, run, pending) for batch, run, pending in _waiting(in_flight) if end.ends(pending)]
    released = [
        (run.first_offset, run.last_offset)
        for _, run, pending in ended
        if _type_at(end, pending) == AcknowledgeType.RELEASE and not limits.ends_after(run.delivery_count)
    ]
    taken_back = overtaken(in_flight, released)
    for batch, run, pending in ended:
        ack_type = _type_at(end, pending)
        decide_runs(in_flight, decision, [(batch, run)], ack_type, pending.member, limits, now_ms)
    if end.commit:
        decision.acknowledged = [
            (run.first_offset, run.last_offset, pending.acknowledge_type) for _, run, pending in ended
        ]
    decision.taken_back = isolated(in_flight, taken_back)
    for _, run in decision.taken_back:
        run.pending = True
    return decision


def pending_acknowledgements(in_flight: InFlight) -> set[PendingAcknowledgement]:
    """All that wait for the end of a transaction."""
    return {pending for _, _, pending in _waiting(in_flight)}


def pending_count(in_flight: InFlight) -> int:
    """The records whose acknowledgement waits for the end of a transaction."""
    data_count = in_flight.control_runs.data_count
    return sum(
        data_count(max(run.first_offset, in_flight.spso), run.last_offset)
        for _, run, _ in _waiting(in_flight)
    )


def _type_at(end: TransactionEnd, pending: PendingAcknowledgement) -> int:
    return pending.acknowledge_type if end.commit else AcknowledgeType.RELEASE


def _waiting(
    in_flight: InFlight,
) -> Iterator[tuple[InFlightBatch, InFlightRun, PendingAcknowledgement]]:
    """The runs that wait for a transaction, ascending, without those whose end is being recorded."""
    for batch, run in in_flight.runs_between(in_flight.spso, in_flight.speo):
        if not run.pending and isinstance(run.condition, PendingAcknowledgement):
            yield batch, run, run.condition
