"""The member's state machine: the next step after each answer."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

from barnabas.client.errors import (
    BrokerError,
    GroupAuthorizationError,
    GroupFullError,
    TopicAuthorizationError,
    UnsupportedBrokerError,
    WrongGroupTypeError,
)
from barnabas.client.group.member import UNASSIGNED_RETRIES_MAX, UNASSIGNED_RETRY_MS, Next, Step
from barnabas.client.share.membership import Membership, MembershipState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import i32, milliseconds

TOPIC_ID = UUID(int=1)
INTERVAL_MS = 5_000
WAIT = Step(Next.WAIT, INTERVAL_MS)


def sent(membership: Membership) -> ShareGroupHeartbeatRequest:
    request = membership.request()
    assert request is not None
    return request


def answer(member_epoch: int = 2, partitions: Iterable[int] | None = None) -> ShareGroupHeartbeatResponse:
    assignment = None
    if partitions is not None:
        indexes = tuple(i32(one) for one in partitions)
        assignment = Assignment(
            topic_partitions=(TopicPartitions(topic_id=TOPIC_ID, partitions=indexes),) if indexes else ()
        )
    return ShareGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        member_epoch=i32(member_epoch),
        heartbeat_interval=milliseconds(INTERVAL_MS),
        assignment=assignment,
    )


def refusal(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=code,
        error_message="so it is",
        member_epoch=i32(0),
        heartbeat_interval=milliseconds(0),
    )


def joined(*partitions: int) -> Membership:
    membership = Membership("group", "member", ["orders"])
    membership.request()
    membership.handle(answer(2, partitions))
    return membership


def assigned(*partitions: int) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition(TOPIC_ID, one) for one in partitions)


def test_joining_names_topics_and_rack_once() -> None:
    membership = Membership("group", "member", ["orders", "returns", "orders"], "rack")
    first = sent(membership)
    assert (first.group_id, first.member_id, first.member_epoch) == ("group", "member", 0)
    assert (first.subscribed_topic_names, first.rack_id) == (("orders", "returns"), "rack")
    assert membership.handle(answer(2, [0])) == WAIT
    later = sent(membership)
    assert (later.member_epoch, later.subscribed_topic_names, later.rack_id) == (2, None, None)


def test_a_lost_answer_to_the_join_is_asked_for_again() -> None:
    membership = Membership("group", "member", ["orders"])
    assert sent(membership) == sent(membership)


def test_an_assignment_is_valid_until_the_next_one() -> None:
    membership = joined(0, 1)
    membership.request()
    membership.handle(answer(3))
    assert (membership.member_epoch, membership.assignment) == (3, assigned(0, 1))
    membership.handle(answer(4, [1, 2]))
    assert membership.assignment == assigned(1, 2)
    membership.handle(answer(5, []))
    assert membership.assignment == assigned()


def test_a_member_without_partitions_asks_sooner_but_not_for_ever() -> None:
    membership = Membership("group", "member", ["orders"])
    membership.request()
    steps = [membership.handle(answer(2, [])) for _ in range(UNASSIGNED_RETRIES_MAX + 1)]
    assert steps == [Step(Next.WAIT, UNASSIGNED_RETRY_MS)] * UNASSIGNED_RETRIES_MAX + [WAIT]


def test_other_topics_are_named_in_the_next_heartbeat() -> None:
    membership = joined(0)
    membership.subscribe(["returns"])
    assert sent(membership).subscribed_topic_names == ("returns",)
    assert membership.handle(answer(3, [1])) == WAIT
    assert sent(membership).subscribed_topic_names is None


def test_topics_changed_during_a_heartbeat_are_sent_immediately() -> None:
    membership = joined(0)
    membership.request()
    membership.subscribe(["returns"])
    assert membership.handle(answer(2)) == Step(Next.AT_ONCE)
    assert sent(membership).subscribed_topic_names == ("returns",)


@pytest.mark.parametrize(
    "code", [ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id, ErrorCode.group_id_not_found]
)
def test_a_member_that_is_not_known_any_more_joins_again(code: ErrorCode) -> None:
    membership = joined(0)
    assert membership.handle(refusal(code)) == Step(Next.AT_ONCE)
    assert membership.state is MembershipState.JOINING
    assert membership.assignment == assigned()
    request = sent(membership)
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ("orders",))


def test_a_member_fenced_while_joining_waits_before_the_next_try() -> None:
    membership = Membership("group", "member", ["orders"])
    assert membership.handle(refusal(ErrorCode.fenced_member_epoch)) == Step(Next.BACK_OFF)


@pytest.mark.parametrize(
    ("code", "move"),
    [
        (ErrorCode.not_coordinator, Next.FIND_COORDINATOR),
        (ErrorCode.coordinator_not_available, Next.FIND_COORDINATOR),
        (ErrorCode.coordinator_load_in_progress, Next.BACK_OFF),
        (ErrorCode.request_timed_out, Next.BACK_OFF),
    ],
)
def test_a_temporary_error_is_retried_and_keeps_the_assignment(code: ErrorCode, move: Next) -> None:
    membership = joined(0)
    assert membership.handle(refusal(code)).move is move
    assert (membership.state, membership.assignment) == (MembershipState.MEMBER, assigned(0))


@pytest.mark.parametrize(
    ("code", "error_type"),
    [
        (ErrorCode.group_authorization_failed, GroupAuthorizationError),
        (ErrorCode.topic_authorization_failed, TopicAuthorizationError),
        (ErrorCode.group_max_size_reached, GroupFullError),
        (ErrorCode.group_id_not_found, WrongGroupTypeError),
        (ErrorCode.unsupported_version, UnsupportedBrokerError),
        (ErrorCode.invalid_request, BrokerError),
    ],
)
def test_a_lasting_error_ends_the_membership(code: ErrorCode, error_type: type[BrokerError]) -> None:
    membership = Membership("group", "member", ["orders"])
    membership.request()
    assert membership.handle(refusal(code)) == Step(Next.STOP)
    assert membership.state is MembershipState.FAILED
    assert type(membership.error) is error_type
    assert str(membership.error) == f"{code.name}: so it is"


def test_answers_after_leaving_are_ignored() -> None:
    membership = joined(0)
    request = membership.leave()
    assert request is not None
    assert request.member_epoch == -1
    assert membership.assignment == assigned()
    assert membership.handle(answer(3, [0])) == Step(Next.STOP)
    assert membership.assignment == assigned()


def test_leaving_during_a_join_sends_a_leave() -> None:
    membership = Membership("group", "member", ["orders"])
    membership.request()
    request = membership.leave()
    assert request is not None
    assert (request.member_epoch, request.subscribed_topic_names) == (-1, None)
    assert membership.handle(answer(1, [0])) == Step(Next.STOP)


def test_a_member_that_never_joined_leaves_without_a_request() -> None:
    assert Membership("group", "member", ["orders"]).leave() is None


def test_a_member_unknown_to_the_coordinator_leaves_without_a_request() -> None:
    membership = joined(0)
    membership.handle(refusal(ErrorCode.unknown_member_id))
    assert membership.leave() is None


def test_a_member_with_a_lasting_error_still_sends_a_leave() -> None:
    membership = joined(0)
    membership.handle(refusal(ErrorCode.topic_authorization_failed))
    request = membership.leave()
    assert request is not None
    assert request.member_epoch == -1


def test_a_member_that_goes_away_leaves_and_joins_again_when_it_comes_back() -> None:
    membership = joined(0, 1)
    membership.suspend()
    assert membership.assignment == frozenset()
    assert sent(membership).member_epoch == -1
    assert membership.handle(answer(-1)) == Step(Next.WAIT, None)
    assert membership.request() is None
    membership.rejoin()
    assert sent(membership).member_epoch == 0


def test_an_answer_from_before_a_member_went_away_does_not_count() -> None:
    membership = Membership("group", "member", ["orders"])
    membership.request()
    membership.suspend()
    assert membership.handle(answer(6, [0])) == Step(Next.AT_ONCE)
    assert membership.assignment == frozenset()
    assert sent(membership).member_epoch == -1


def test_the_answer_to_a_leave_does_not_count_after_the_member_came_back() -> None:
    membership = joined(0)
    membership.suspend()
    assert sent(membership).member_epoch == -1
    membership.rejoin()
    assert membership.handle(answer(-1)) == Step(Next.AT_ONCE)
    assert membership.state is MembershipState.JOINING
    assert sent(membership).member_epoch == 0
