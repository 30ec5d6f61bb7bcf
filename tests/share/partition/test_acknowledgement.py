"""Acknowledgements: request checks, moves between states, errors, all or nothing, RENEW."""

from __future__ import annotations

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.share.partition.acknowledgement import AcknowledgeType, validate_acknowledgement_batches
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    GAP,
    LIMITS,
    REJECT,
    RELEASE,
    RENEW,
    Leader,
)

INVALID_RECORD_STATE = ErrorCode.invalid_record_state
INVALID_REQUEST = ErrorCode.invalid_request


def held(*sizes: int) -> Leader:
    """A share-partition whose records are all held by member-1, each producer batch a batch in flight."""
    leader = Leader().produce(*sizes)
    leader.fetch(batch_size=1)
    return leader


def refused(leader: Leader, *batches: AckBatch, member_id: str = "member-1") -> ErrorCode:
    with pytest.raises(ApiError) as raised:
        leader.decide_batches(*batches, member_id=member_id)
    return raised.value.code


def test_acknowledge_types_have_kafka_s_ids() -> None:
    assert [(one.name, one.value) for one in AcknowledgeType] == [
        ("GAP", 0),
        ("ACCEPT", 1),
        ("RELEASE", 2),
        ("REJECT", 3),
        ("RENEW", 4),
    ]


@pytest.mark.parametrize(
    ("batches", "version", "is_renew_ack", "is_valid"),
    [
        ([], 2, False, True),
        ([AckBatch(0, 9, (1,))], 1, False, True),
        ([AckBatch(0, 2, (1, 0, 3))], 1, False, True),
        ([AckBatch(0, 2, (1, 2, 4))], 2, True, True),
        ([AckBatch(0, 4, (1,)), AckBatch(4, 9, (1,))], 2, False, True),
        ([AckBatch(5, 4, (1,))], 2, False, False),
        ([AckBatch(0, 5, (1,)), AckBatch(4, 9, (1,))], 2, False, False),
        ([AckBatch(0, 9, ())], 2, False, False),
        ([AckBatch(0, 9, (1, 1))], 2, False, False),
        ([AckBatch(0, 0, (1, 1))], 2, False, False),
        ([AckBatch(0, 9, (-1,))], 2, False, False),
        ([AckBatch(0, 9, b"\xff")], 2, False, False),
        ([AckBatch(0, 9, (5,))], 2, True, False),
        ([AckBatch(0, 9, (4,))], 1, True, False),
        ([AckBatch(0, 9, (4,))], 2, False, False),
        ([AckBatch(0, 9, (1,)), AckBatch(10, 10, (4,))], 2, False, False),
    ],
)
def test_only_valid_batches_pass_the_check_of_the_request(
    batches: list[AckBatch], version: int, is_renew_ack: bool, is_valid: bool
) -> None:
    if is_valid:
        validate_acknowledgement_batches(batches, version=version, is_renew_ack=is_renew_ack)
        return
    with pytest.raises(ApiError) as raised:
        validate_acknowledgement_batches(batches, version=version, is_renew_ack=is_renew_ack)
    assert raised.value.code is INVALID_REQUEST


@pytest.mark.parametrize(
    ("ack_type", "state", "cause"),
    [
        (GAP, ARCHIVED, Cause.GAP),
        (ACCEPT, ACKNOWLEDGED, Cause.ACCEPT),
        (RELEASE, AVAILABLE, Cause.RELEASE),
        (REJECT, ARCHIVED, Cause.REJECT),
    ],
)
def test_acknowledgement_moves_a_held_record(ack_type: int, state: RecordState, cause: Cause) -> None:
    leader = held(10)
    decision = leader.decide(3, 5, ack_type)
    assert decision.changes == [StateRange(3, 5, state, 1, cause, "member-1")]
    leader.record(decision)
    assert leader.states() == [(0, 2, AVAILABLE, 0), (3, 5, state, 1), (6, 9, AVAILABLE, 0)]


def test_release_at_the_delivery_limit_archives() -> None:
    leader = held(2)
    leader.limits = LIMITS._replace(delivery_count_max=2)
    leader.acknowledge(0, 1, RELEASE)
    leader.fetch()
    decision = leader.decide(0, 1, RELEASE)
    assert decision.changes == [StateRange(0, 1, ARCHIVED, 2, Cause.DELIVERY_LIMIT, "member-1")]
    outcome = leader.record(decision)
    assert outcome.spso_moved
    assert not outcome.released


@pytest.mark.parametrize(("limit_after", "state"), [(2, ARCHIVED), (10, AVAILABLE)])
def test_delivery_limit_is_that_of_the_moment(limit_after: int, state: RecordState) -> None:
    leader = held(3)
    leader.acknowledge(1, 2, RELEASE)
    leader.fetch()
    leader.limits = LIMITS._replace(delivery_count_max=limit_after)
    leader.acknowledge(1, 2, RELEASE)
    assert leader.states()[1] == (1, 2, state, 2)


def test_each_offset_may_have_its_own_type() -> None:
    leader = held(6)
    leader.acknowledge(0, 5, ACCEPT, ACCEPT, RELEASE, GAP, REJECT, ACCEPT)
    assert leader.partition.spso == 2
    assert leader.states() == [(2, 2, AVAILABLE, 1), (3, 4, ARCHIVED, 1), (5, 5, ACKNOWLEDGED, 1)]


def test_one_batch_may_span_several_batches_in_flight() -> None:
    leader = held(5, 5, 5)
    leader.acknowledge(3, 11, ACCEPT)
    assert leader.states() == [(0, 2, AVAILABLE, 0), (3, 11, ACKNOWLEDGED, 1), (12, 14, AVAILABLE, 0)]
    leader.acknowledge(0, 2, ACCEPT)
    assert leader.partition.spso == 12


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        pytest.param(AckBatch(20, 25, (1,)), INVALID_REQUEST, id="beyond the in-flight end"),
        pytest.param(AckBatch(5, 10, (1,)), INVALID_REQUEST, id="ends beyond the in-flight end"),
        pytest.param(AckBatch(0, 3, (1,)), INVALID_RECORD_STATE, id="some are final"),
        pytest.param(AckBatch(2, 2, (1,)), INVALID_RECORD_STATE, id="final"),
        pytest.param(AckBatch(6, 7, (1,)), INVALID_RECORD_STATE, id="available"),
        pytest.param(AckBatch(4, 6, (1,)), INVALID_RECORD_STATE, id="some are available"),
        pytest.param(AckBatch(8, 9, (1,)), INVALID_RECORD_STATE, id="held by another member"),
        pytest.param(
            AckBatch(8, 9, (2, 2)), INVALID_RECORD_STATE, id="held by another member, type for each"
        ),
    ],
)
def test_a_refused_acknowledgement_changes_no_state(batch: AckBatch, code: ErrorCode) -> None:
    leader = held(8).produce(2)
    leader.fetch("member-2")
    leader.acknowledge(2, 3, ACCEPT)
    leader.acknowledge(6, 7, RELEASE)
    before = leader.states()
    assert refused(leader, batch) is code
    assert leader.states() == before


def test_nothing_in_flight_is_not_found() -> None:
    leader = held(5)
    leader.acknowledge(0, 4, ACCEPT)
    assert refused(leader, AckBatch(5, 9, (1,))) is INVALID_RECORD_STATE
    assert refused(Leader(), AckBatch(0, 0, (1,))) is INVALID_RECORD_STATE


def test_offsets_below_the_spso_succeed_and_are_passed_over() -> None:
    leader = held(10)
    leader.acknowledge(0, 4, ACCEPT)
    assert leader.decide(0, 4, REJECT).is_empty
    decision = leader.decide(2, 6, REJECT)
    assert decision.changes == [StateRange(5, 6, ARCHIVED, 1, Cause.REJECT, "member-1")]
    leader.record(decision)
    decision = leader.decide(4, 8, ACCEPT, ACCEPT, ACCEPT, REJECT, RELEASE)
    assert [(one.base_offset, one.cause) for one in decision.changes] == [
        (7, Cause.REJECT),
        (8, Cause.RELEASE),
    ]


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(AckBatch(6, 12, (1,)), id="beyond the end"),
        pytest.param(AckBatch(3, 6, (1,)), id="named twice"),
        pytest.param(AckBatch(8, 8, (1,)), id="not held"),
    ],
)
def test_one_refused_batch_undoes_all_batches_of_the_request(failing: AckBatch) -> None:
    leader = held(10)
    leader.acknowledge(8, 8, ACCEPT)
    before = leader.states()
    with pytest.raises(ApiError):
        leader.decide_batches(AckBatch(0, 1, (1,)), AckBatch(2, 3, (2, 3)), failing)
    assert leader.states() == before
    leader.acknowledge(0, 7, ACCEPT)
    assert leader.partition.spso == 9, "nothing is left pending"


def test_equal_neighbours_are_refused_as_named_twice() -> None:
    assert refused(held(10), AckBatch(0, 4, (1,)), AckBatch(4, 9, (1,))) is INVALID_RECORD_STATE


def test_the_first_failing_batch_tells_the_error() -> None:
    leader = held(10)
    leader.acknowledge(2, 2, RELEASE)
    assert refused(leader, AckBatch(0, 4, (1,)), AckBatch(5, 10, (1,))) is INVALID_RECORD_STATE
    assert refused(leader, AckBatch(5, 10, (1,)), AckBatch(11, 11, (1,))) is INVALID_REQUEST


def test_a_record_takes_one_change_at_a_time() -> None:
    leader = held(10)
    first = leader.decide(0, 4, ACCEPT)
    assert refused(leader, AckBatch(4, 4, (3,))) is INVALID_RECORD_STATE
    assert refused(leader, AckBatch(4, 5, (4,))) is INVALID_RECORD_STATE
    second = leader.decide(5, 9, ACCEPT)
    assert leader.partition.spso == 0, "the SPSO waits for the record"
    leader.record(first, second)
    assert leader.partition.spso == 10


def test_a_failed_write_gives_the_records_back_to_their_owner() -> None:
    leader = held(10)
    decision = leader.decide(0, 9, *[ACCEPT, RELEASE] * 5)
    leader.partition.abort(decision)
    assert leader.states() == [(0, 9, AVAILABLE, 0)]
    assert refused(leader, AckBatch(0, 9, (1,)), member_id="member-2") is INVALID_RECORD_STATE
    assert leader.acknowledge(0, 9, ACCEPT).spso_moved


def test_a_failed_write_leaves_the_pending_change_of_its_neighbour_alone() -> None:
    leader = held(10)
    low, high = leader.decide(0, 4, ACCEPT), leader.decide(5, 9, REJECT)
    leader.partition.abort(high)
    leader.record(low)
    assert leader.states() == [(5, 9, AVAILABLE, 0)]
    assert leader.partition.spso == 5


def test_decisions_complete_in_any_order_while_the_spso_waits_for_the_lowest() -> None:
    leader = held(5, 5)
    low, high = leader.decide(0, 4, ACCEPT), leader.decide(5, 9, ACCEPT)
    assert not leader.partition.complete(high).spso_moved
    assert leader.partition.complete(low).spso_moved
    assert leader.partition.spso == 10


def test_release_wakes_waits_for_records_and_acceptance_wakes_waits_for_room() -> None:
    leader = held(10)
    outcome = leader.acknowledge(5, 9, RELEASE)
    assert (outcome.released, outcome.spso_moved) == (True, False)
    outcome = leader.acknowledge(0, 4, ACCEPT)
    assert (outcome.released, outcome.spso_moved) == (False, True)


def test_an_acknowledged_batch_leaves_the_flight_only_with_all_before_it() -> None:
    leader = held(5, 5, 5)
    leader.acknowledge(5, 9, ACCEPT)
    assert leader.partition.in_flight_batch_count == 3
    assert leader.partition.delivery_complete_count == 5
    leader.acknowledge(0, 2, ACCEPT)
    assert (leader.partition.spso, leader.partition.in_flight_batch_count) == (3, 3)
    leader.acknowledge(3, 4, REJECT)
    assert (leader.partition.spso, leader.partition.in_flight_batch_count) == (10, 1)
    assert leader.partition.delivery_complete_count == 0


def test_renew_restarts_the_lock_at_once_and_records_nothing() -> None:
    leader = held(10)
    leader.now_ms = 900
    assert leader.decide(0, 4, RENEW).is_empty
    assert leader.expire(1_000).changes == [StateRange(5, 9, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")]
    assert leader.expire(1_899).is_empty
    assert leader.expire(1_900).changes == [StateRange(0, 4, AVAILABLE, 1, Cause.LOCK_EXPIRED, "member-1")]


def test_some_offsets_may_be_renewed_among_other_types() -> None:
    leader = held(5)
    leader.now_ms = 500
    leader.acknowledge(0, 4, ACCEPT, RENEW, RENEW, RELEASE, RENEW)
    assert leader.states() == [(1, 2, AVAILABLE, 0), (3, 3, AVAILABLE, 1), (4, 4, AVAILABLE, 0)]
    assert leader.expire(1_000).is_empty
    assert leader.expire(1_500).outcome.released


def test_renew_is_not_undone_when_a_later_batch_fails() -> None:
    leader = held(10)
    leader.now_ms = 500
    assert refused(leader, AckBatch(0, 4, (4,)), AckBatch(20, 20, (1,))) is INVALID_REQUEST
    assert leader.expire(1_000).changes[0].base_offset == 5


@pytest.mark.parametrize("types", [[RENEW], [RENEW, ACCEPT, ACCEPT, ACCEPT, ACCEPT]])
def test_renew_may_be_disabled(types: list[int]) -> None:
    leader = held(5)
    leader.limits = LIMITS._replace(renew_enabled=False)
    assert refused(leader, AckBatch(0, 4, types)) is INVALID_RECORD_STATE
    assert leader.acknowledge(0, 4, ACCEPT).spso_moved


def test_renew_of_an_expired_or_foreign_record_is_refused() -> None:
    leader = held(5)
    assert refused(leader, AckBatch(0, 4, (4,)), member_id="member-2") is INVALID_RECORD_STATE
    leader.record(leader.expire(1_000))
    assert refused(leader, AckBatch(0, 4, (4,))) is INVALID_RECORD_STATE


def test_naming_a_control_offset_is_harmless() -> None:
    leader = Leader().control(2).produce(3).control(3).produce(3)
    leader.fetch(records_max=1)
    leader.fetch("member-2")
    assert leader.decide(0, 1, ACCEPT).is_empty
    assert leader.decide(5, 7, ACCEPT).is_empty
    leader.acknowledge(2, 6, ACCEPT)
    assert leader.partition.spso == 5
    leader.acknowledge(6, 10, ACCEPT, member_id="member-2")
    assert leader.partition.spso == 11


def test_500_single_acknowledgements_across_control_records_are_one_change() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=500))
    for _ in range(50):
        leader.produce(10).control(2)
    acquired = leader.fetch()
    assert len(acquired) == 50
    offsets = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
    decision = leader.decide_batches(*(AckBatch(offset, offset, (ACCEPT,)) for offset in offsets))
    assert decision.changes == [StateRange(0, 597, ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1")]
    leader.record(decision)
    assert leader.partition.spso == 598


def test_a_recorded_range_covers_the_control_offsets_before_its_first_record() -> None:
    leader = Leader().produce(2).control(3).produce(2)
    leader.fetch()
    assert leader.decide(5, 6, ACCEPT).changes == [
        StateRange(2, 6, ACKNOWLEDGED, 1, Cause.ACCEPT, "member-1")
    ]
