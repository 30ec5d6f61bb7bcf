"""The state machine of a consumer group's member, and how it reconciles with any sequence of assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consume.consumer_membership import (
    ConsumerMembership,
    ConsumerState,
    MemberProfile,
    Subscription,
)
from barnabas.client.consume.ownership import Ownership
from barnabas.client.errors import BrokerError, WrongGroupTypeError
from barnabas.client.group.member import Next, Step
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.consumer_group_heartbeat_v1 import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.extended.packed import pack_shares
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import i32, milliseconds
from barnabas.protocol.record_keys.hash_range import HashRange, even_ranges

TOPIC_ID = UUID(int=1)
INTERVAL_MS = 5_000
ORDERS = Subscription(("orders",))


def answer(
    member_epoch: int = 1,
    partitions: Iterable[int] | None = None,
    code: ErrorCode = ErrorCode.none,
    shares: Mapping[int, HashRange] | None = None,
) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if partitions is not None:
        indexes = tuple(map(i32, partitions))
        packed = pack_shares(shares) if shares else None
        topic = TopicPartitions(topic_id=TOPIC_ID, partitions=indexes, hash_ranges=packed)
        assignment = Assignment(topic_partitions=(topic,) if indexes else ())
    return ConsumerGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=code,
        error_message=None,
        member_epoch=i32(member_epoch),
        heartbeat_interval=milliseconds(INTERVAL_MS),
        assignment=assignment,
    )


def owned(*indexes: int) -> frozenset[Ownership]:
    return frozenset(Ownership(TopicIdPartition(TOPIC_ID, index)) for index in indexes)


def sent(membership: ConsumerMembership) -> ConsumerGroupHeartbeatRequest:
    request = membership.request()
    assert request is not None
    return request


def new_member(instance_id: str | None = None, subscription: Subscription = ORDERS) -> ConsumerMembership:
    return ConsumerMembership(
        MemberProfile("group", "member", 60_000, instance_id, "rack", "uniform"), subscription
    )


def joined(*indexes: int) -> ConsumerMembership:
    membership = new_member()
    sent(membership)
    membership.handle(answer(1, indexes))
    membership.acknowledge(owned(*indexes))
    sent(membership)
    membership.handle(answer(1))
    return membership


def test_a_join_has_everything_and_later_heartbeats_only_changes() -> None:
    membership = new_member()
    join = sent(membership)
    assert (join.member_epoch, join.rack_id, join.server_assignor) == (0, "rack", "uniform")
    assert (join.subscribed_topic_names, join.subscribed_topic_regex) == (("orders",), None)
    assert join.topic_partitions == ()
    membership.handle(answer(3, [0]))
    later = sent(membership)
    assert (later.member_epoch, later.rack_id, later.server_assignor) == (3, None, None)
    assert (later.subscribed_topic_names, later.topic_partitions) == (None, None)


def test_the_owned_partitions_are_sent_once_they_change() -> None:
    membership = joined(0, 1)
    assert sent(membership).topic_partitions is None
    membership.handle(answer(1, [0]))
    assert membership.owned == owned(0, 1), "until the revoked partition is given up"
    assert sent(membership).topic_partitions is None
    membership.acknowledge(owned(0))
    told = sent(membership).topic_partitions
    assert told is not None
    (reported,) = told
    assert (reported.topic_id, reported.partitions) == (TOPIC_ID, (0,))


def test_a_change_during_a_heartbeat_is_sent_at_once() -> None:
    membership = joined(0)
    sent(membership)
    membership.subscribe(Subscription(("returns",)))
    assert membership.handle(answer(1)) == Step(Next.AT_ONCE)
    assert sent(membership).subscribed_topic_names == ("returns",)


def test_after_a_lost_answer_everything_is_sent_again() -> None:
    membership = joined(0)
    sent(membership)
    membership.note_unanswered()
    again = sent(membership)
    assert again.subscribed_topic_names == ("orders",)
    assert again.topic_partitions
    assert again.rack_id == "rack"


def test_a_pattern_is_withdrawn_with_an_empty_one() -> None:
    membership = new_member(subscription=Subscription(pattern="o.*"))
    assert (sent(membership).subscribed_topic_names, sent(membership).subscribed_topic_regex) == ((), "o.*")
    membership.handle(answer(1))
    membership.subscribe(ORDERS)
    assert sent(membership).subscribed_topic_regex == ""


@pytest.mark.parametrize("code", [ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id])
def test_a_fenced_member_is_silent_until_its_partitions_are_lost(code: ErrorCode) -> None:
    membership = joined(0)
    sent(membership)
    assert membership.handle(answer(0, code=code)) == Step(Next.WAIT, None)
    assert membership.is_out
    assert membership.request() is None
    assert membership.owned == owned(0), "the application still has to be told"
    membership.rejoin()
    assert sent(membership).member_epoch == 0
    assert membership.owned == frozenset()


def test_a_member_that_is_refused_while_joining_backs_off() -> None:
    membership = new_member()
    sent(membership)
    assert membership.handle(answer(0, code=ErrorCode.fenced_member_epoch)) == Step(Next.BACK_OFF)
    assert sent(membership).member_epoch == 0


@pytest.mark.parametrize(
    ("code", "move"),
    [
        (ErrorCode.not_coordinator, Next.FIND_COORDINATOR),
        (ErrorCode.coordinator_load_in_progress, Next.BACK_OFF),
        (ErrorCode.unreleased_instance_id, Next.STOP),
        (ErrorCode.group_authorization_failed, Next.STOP),
        (ErrorCode.invalid_regular_expression, Next.STOP),
    ],
)
def test_other_errors_wait_or_end_the_membership(code: ErrorCode, move: Next) -> None:
    membership = joined(0)
    sent(membership)
    assert membership.handle(answer(0, code=code)).move is move
    assert isinstance(membership.error, BrokerError) == (move is Next.STOP)


def test_a_group_of_another_type_ends_the_membership() -> None:
    membership = new_member()
    sent(membership)
    assert membership.handle(answer(0, code=ErrorCode.group_id_not_found)) == Step(Next.STOP)
    assert type(membership.error) is WrongGroupTypeError


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("one", -2)])
def test_a_member_that_goes_away_says_so_and_waits_to_be_called(instance_id: str | None, epoch: int) -> None:
    membership = new_member(instance_id)
    sent(membership)
    membership.handle(answer(1, [0]))
    membership.suspend()
    leaving = sent(membership)
    assert (leaving.member_epoch, leaving.instance_id) == (epoch, instance_id)
    assert membership.handle(answer(epoch)) == Step(Next.WAIT, None)
    assert membership.request() is None
    membership.rejoin()
    assert sent(membership).member_epoch == 0


def test_an_answer_from_an_earlier_membership_does_not_count() -> None:
    membership = joined(0)
    sent(membership)
    membership.suspend()
    membership.rejoin()
    assert membership.handle(answer(9, [0, 1])) == Step(Next.AT_ONCE)
    assert membership.state is ConsumerState.JOINING
    assert membership.assignment == frozenset()


def test_a_member_that_never_joined_leaves_without_a_request() -> None:
    assert new_member().leave() is None
    last = joined(0).leave()
    assert last is not None
    assert last.member_epoch == -1


def test_a_member_with_individual_commits_says_so_in_every_heartbeat() -> None:
    sharing = ConsumerMembership(MemberProfile("group", "member", 60_000, individual_commit=True), ORDERS)
    for epoch in (1, 2):
        assert sent(sharing).individual_commit
        sharing.handle(answer(epoch, [0]))
    left = sharing.leave()
    assert left is not None
    assert left.individual_commit
    assert not sent(new_member()).individual_commit


def test_a_share_with_another_range_is_another_ownership_and_reported_without_its_range() -> None:
    lower, upper = even_ranges(2)
    membership = joined(0)
    partition = TopicIdPartition(TOPIC_ID, 0)
    for hashes in (lower, upper):
        sent(membership)
        membership.handle(answer(2, [0], shares={0: hashes}))
        assert membership.assignment == {Ownership(partition, hashes)}
        assert membership.assignment != membership.owned
        membership.acknowledge(membership.assignment)
        told = sent(membership).topic_partitions
        assert told is not None
        assert told[0].partitions == (0,)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["assign", "reconcile", "fence", "lose", "away", "unanswered"]),
        st.frozensets(st.integers(0, 5)),
    ),
    max_size=40,
)


@given(EVENTS)
def test_the_coordinator_always_learns_which_partitions_the_member_has(
    events: list[tuple[str, frozenset[int]]],
) -> None:
    """A coordinator that keeps the last reported partitions agrees with the member after each answer."""
    membership, epoch = new_member(), 0
    known: frozenset[Ownership] = frozenset()
    for event, indexes in events:
        if event == "reconcile" and membership.is_member:
            membership.acknowledge(membership.assignment)
        elif event == "lose":
            membership.rejoin()
        elif event == "away":
            membership.suspend()
        request = membership.request()
        if request is None:
            assert membership.is_out
            continue
        if request.member_epoch <= 0:
            epoch, known = 0, owned()
        if request.topic_partitions is not None:
            known = owned(*(index for topic in request.topic_partitions for index in topic.partitions))
        if event == "unanswered":
            membership.note_unanswered()
        elif event == "fence":
            membership.handle(answer(0, code=ErrorCode.fenced_member_epoch))
        else:
            epoch += 1
            membership.handle(answer(epoch, indexes if event == "assign" else None))
        if membership.is_member:
            assert known == membership.owned
