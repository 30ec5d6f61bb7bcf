"""Acknowledgements that wait for the end of a transaction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import (
    Cause,
    LetterPlace,
    PendingAcknowledgement,
    RecordState,
    StateRange,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.share.partition.acknowledgement import TransactionEnd, check_types
from barnabas.share.partition.decision import Decision
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    GAP,
    LIMITS,
    REJECT,
    RELEASE,
    RENEW,
    Leader,
)

PRODUCER = ProducerIdentity(7, 3)
COMMIT, ABORT = TransactionEnd(PRODUCER, commit=True), TransactionEnd(PRODUCER, commit=False)


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch()
    return leader


def batch(first: int, last: int, *types: int) -> AckBatch:
    return AckBatch(first, last, bytes(types))


def pending(leader: Leader, first: int, last: int, ack_type: int = ACCEPT) -> Decision:
    decision = leader.partition.decide_pending("member-1", [batch(first, last, ack_type)], PRODUCER)
    leader.record(decision)
    return decision


def end(leader: Leader, outcome: TransactionEnd) -> Decision:
    decision = leader.partition.decide_end(outcome, leader.limits, leader.now_ms)
    leader.record(decision)
    return decision


def test_a_pending_record_is_recorded_as_available_with_this_delivery_and_its_transaction() -> None:
    leader = held(10)
    decision = pending(leader, 2, 4)
    condition = PendingAcknowledgement(7, 3, ACCEPT, "member-1")
    assert decision.changes == [StateRange(2, 4, AVAILABLE, 1, Cause.NONE, "member-1", condition)]
    assert leader.states() == [(0, 1, AVAILABLE, 0), (2, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 0)]
    assert leader.partition.pending_acknowledgements == {condition}


@pytest.mark.parametrize(
    ("ack_type", "state", "cause"),
    [
        (GAP, ARCHIVED, Cause.GAP),
        (ACCEPT, ACKNOWLEDGED, Cause.ACCEPT),
        (RELEASE, AVAILABLE, Cause.RELEASE),
        (REJECT, ARCHIVED, Cause.REJECT),
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_the_commit_gives_it_its_effect(
    ack_type: int, state: RecordState, cause: Cause, restarts: bool
) -> None:
    leader = held(10)
    pending(leader, 2, 4, ack_type)
    if restarts:
        leader.restart()
    decision = end(leader, COMMIT)
    assert decision.changes == [StateRange(2, 4, state, 1, cause, "member-1")]
    assert decision.acknowledged == [(2, 4, ack_type)]
    assert not leader.partition.pending_acknowledgements


@pytest.mark.parametrize("ack_type", [GAP, ACCEPT, RELEASE, REJECT])
@pytest.mark.parametrize("restarts", [False, True])
def test_an_abort_releases_the_record(ack_type: int, restarts: bool) -> None:
    leader = held(10)
    pending(leader, 2, 4, ack_type)
    if restarts:
        leader.restart()
    decision = end(leader, ABORT)
    assert decision.changes == [StateRange(2, 4, AVAILABLE, 1, Cause.RELEASE, "member-1")]
    assert list(decision.acknowledged) == []
    assert (2, 4, 2) in leader.fetch("member-2")


def test_an_abort_at_the_delivery_limit_archives_the_record() -> None:
    leader = held(3)
    leader.limits = LIMITS._replace(delivery_count_max=1)
    pending(leader, 0, 2)
    assert end(leader, ABORT).changes == [StateRange(0, 2, ARCHIVED, 1, Cause.DELIVERY_LIMIT, "member-1")]
    assert leader.partition.spso == 3


def test_a_rejection_gets_its_dead_letter_at_the_commit() -> None:
    leader = held(3)
    leader.limits = LIMITS._replace(letter_place=LetterPlace())
    assert pending(leader, 0, 2, REJECT).letters == []
    (letter,) = end(leader, COMMIT).letters
    assert (letter.base_offset, letter.last_offset, letter.state) == (0, 2, ARCHIVING)


def test_a_pending_record_has_no_lock_and_no_owner() -> None:
    leader = held(10)
    pending(leader, 0, 4)
    assert leader.expire(1_000).changes == [StateRange(5, 9, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")]
    assert leader.partition.next_deadline_ms() is None
    assert leader.release_member().is_empty
    assert leader.fetch("member-2") == [(5, 9, 2)]


@pytest.mark.parametrize("restarts", [False, True])
def test_no_other_acknowledgement_is_possible(restarts: bool) -> None:
    leader = held(10)
    pending(leader, 2, 4)
    if restarts:
        leader.restart()
    before = leader.states()
    decisions: list[Callable[[], Decision]] = [
        lambda: leader.decide(3, 3, RELEASE),
        lambda: leader.decide(3, 3, RENEW),
        lambda: leader.partition.decide_pending("member-1", [batch(4, 4, ACCEPT)], PRODUCER),
    ]
    for decide in decisions:
        with pytest.raises(ApiError, match="in a transaction") as refused:
            decide()
        assert refused.value.code is ErrorCode.invalid_record_state
    assert leader.states() == before


def test_no_other_acknowledgement_is_possible_while_it_is_being_recorded() -> None:
    leader = held(10)
    decision = leader.partition.decide_pending("member-1", [batch(2, 4, ACCEPT)], PRODUCER)
    with pytest.raises(ApiError, match="being recorded"):
        leader.decide(4, 4, REJECT)
    leader.record(decision)
    assert leader.partition.pending_count == 3


def test_all_batches_wait_or_none() -> None:
    leader = held(4)
    leader.acknowledge(2, 2, ACCEPT)
    with pytest.raises(ApiError, match="not acquired"):
        leader.partition.decide_pending("member-1", [batch(0, 1, ACCEPT), batch(2, 3, ACCEPT)], PRODUCER)
    assert not leader.partition.pending_acknowledgements
    leader.acknowledge(0, 1, ACCEPT)
    assert leader.partition.spso == 3


def test_a_failed_write_leaves_the_records_with_their_member() -> None:
    leader = held(4)
    batches = [batch(0, 3, ACCEPT)]
    leader.partition.abort(leader.partition.decide_pending("member-1", batches, PRODUCER))
    assert not leader.partition.pending_acknowledgements
    assert leader.partition.next_deadline_ms() == 1_000
    leader.acknowledge(0, 3, ACCEPT)
    assert leader.partition.spso == 4


def test_a_failed_end_is_decided_again() -> None:
    leader = held(4)
    pending(leader, 0, 3)
    leader.partition.abort(leader.partition.decide_end(COMMIT, leader.limits, leader.now_ms))
    assert leader.partition.pending_acknowledgements
    assert leader.expire(10_000).is_empty
    end(leader, COMMIT)
    assert leader.partition.spso == 4


@pytest.mark.parametrize(
    ("producer", "is_ended"),
    [
        (ProducerIdentity(7, 3), True),
        (ProducerIdentity(7, 4), True),
        (ProducerIdentity(7, 2), False),
        (ProducerIdentity(8, 3), False),
    ],
)
def test_the_end_of_the_producer_or_of_a_newer_epoch_counts(
    producer: ProducerIdentity, is_ended: bool
) -> None:
    leader = held(4)
    pending(leader, 0, 3)
    decision = end(leader, TransactionEnd(producer, commit=True))
    assert decision.is_empty is not is_ended
    assert leader.partition.spso == (4 if is_ended else 0)


def test_an_end_that_comes_twice_changes_nothing() -> None:
    leader = held(4)
    pending(leader, 0, 1)
    end(leader, ABORT)
    assert end(leader, COMMIT).is_empty


def test_records_that_are_gone_from_the_log_wait_no_longer() -> None:
    leader = held(10)
    pending(leader, 2, 6)
    leader.record(leader.partition.decide_log_start(5))
    assert end(leader, ABORT).changes == [StateRange(5, 6, AVAILABLE, 1, Cause.RELEASE, "member-1")]


def test_a_change_of_the_order_waits_for_pending_records() -> None:
    in_order = LIMITS._replace(key_run_max=2)
    leader = held(1)
    leader.limits = in_order
    pending(leader, 0, 0)
    plan = leader.partition.plan_acquire(10, in_order)
    assert not plan.reads, "a change of the order waits for all locks"
    end(leader, COMMIT)
    assert leader.partition.spso == 1


def test_a_renewal_is_refused() -> None:
    check_types([batch(0, 1, ACCEPT)])
    with pytest.raises(ApiError, match="RENEW") as refused:
        check_types([batch(0, 1, ACCEPT, RENEW)])
    assert refused.value.code is ErrorCode.invalid_request
