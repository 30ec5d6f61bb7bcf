"""JoinGroup: which members may join, which have to ask again, and the answers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicSettings
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, PROTOCOLS, SESSION_MS, TOPIC, Bench, subscription
from tests.coordinator.classic.share_groups import make_share_group


def test_the_first_member_gets_an_id_and_leads_once_it_has_asked_again() -> None:
    bench = Bench()
    member_id = bench.new_member_id()
    assert member_id.startswith("client-")
    reply = bench.start_join(member_id)
    bench.advance(0)
    result = reply.result()
    assert (result.error_code, result.leader, result.generation_id) == (ErrorCode.none, member_id, 1)
    assert (result.protocol_type, result.protocol_name) == ("consumer", "range")
    assert [one.member_id for one in result.members] == [member_id]
    assert result.members[0].metadata == PROTOCOLS["range"]


def test_old_clients_join_without_asking_twice() -> None:
    bench = Bench()
    reply = bench.start_join(version=3)
    bench.advance(0)
    assert reply.result().error_code is ErrorCode.none


def test_only_the_leader_hears_of_all_members() -> None:
    bench = Bench()
    ids = [bench.new_member_id() for _ in range(3)]
    replies = [bench.start_join(one) for one in ids]
    bench.advance(0)
    results = [reply.result() for reply in replies]
    assert {result.leader for result in results} == {ids[0]}
    assert [len(result.members) for result in results] == [3, 0, 0]


def test_an_unused_member_id_ends_with_its_session() -> None:
    bench = Bench()
    member_id = bench.new_member_id()
    bench.advance(SESSION_MS)
    assert bench.join_code(bench.start_join(member_id)) is ErrorCode.unknown_member_id


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"session_ms": 5_999}, ErrorCode.invalid_session_timeout),
        ({"session_ms": 1_800_001}, ErrorCode.invalid_session_timeout),
        ({"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": {}}, ErrorCode.inconsistent_group_protocol),
        ({"member_id": "stranger"}, ErrorCode.unknown_member_id),
    ],
)
def test_invalid_requests_are_refused(changed: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench()
    assert bench.join_code(bench.start_join(**changed)) is code


@pytest.mark.parametrize(
    ("protocol_type", "names", "code"),
    [
        ("consumer", ["sticky"], ErrorCode.inconsistent_group_protocol),
        ("connect", ["range"], ErrorCode.inconsistent_group_protocol),
        ("consumer", ["sticky", "range"], ErrorCode.member_id_required),
    ],
)
def test_a_member_must_share_a_protocol_with_all(
    protocol_type: str, names: list[str], code: ErrorCode
) -> None:
    bench = Bench()
    bench.stable()
    reply = bench.start_join(protocol_type=protocol_type, protocols=dict.fromkeys(names, b""))
    assert bench.join_code(reply) is code


def test_the_protocol_with_most_votes_among_the_common_ones_is_selected() -> None:
    bench = Bench()
    ids = [bench.new_member_id() for _ in range(3)]
    preferences = [["a", "b", "c"], ["b", "a"], ["b", "a", "d"]]
    replies = [
        bench.start_join(one, protocols=dict.fromkeys(names, subscription(TOPIC)))
        for one, names in zip(ids, preferences, strict=True)
    ]
    bench.advance(0)
    assert {reply.result().protocol_name for reply in replies} == {"b"}


def test_a_share_groups_id_is_taken() -> None:
    bench = Bench()
    bench.catalog.create(TOPIC)
    make_share_group(bench, GROUP)
    assert bench.join_code(bench.start_join()) is ErrorCode.inconsistent_group_protocol


def test_the_members_of_a_group_have_a_bound() -> None:
    bench = Bench(ClassicSettings(max_size=2))
    first, second = bench.stable(2)
    assert bench.join_code(bench.start_join()) is ErrorCode.group_max_size_reached
    assert bench.heartbeat(first) is bench.heartbeat(second) is ErrorCode.none


def test_while_members_join_only_those_that_have_joined_count() -> None:
    bench = Bench(ClassicSettings(max_size=2))
    members = bench.stable(2)
    newcomer = "nobody"
    replies = [bench.start_join(one.member_id) for one in members]
    assert bench.state() is ClassicGroupState.COMPLETING_REBALANCE
    assert bench.join_code(bench.start_join(newcomer)) is ErrorCode.group_max_size_reached
    assert all(reply.result().error_code is ErrorCode.none for reply in replies)


def test_a_member_too_many_is_not_waited_for() -> None:
    bench = Bench()
    members = bench.stable(3)
    bench.settings = ClassicSettings(max_size=2)
    bench.restart()
    replies = [bench.start_join(one.member_id) for one in members]
    codes = [bench.join_code(reply) for reply in replies]
    assert codes == [ErrorCode.none, ErrorCode.none, ErrorCode.group_max_size_reached]


def test_the_number_of_groups_has_a_bound() -> None:
    bench = Bench(ClassicSettings(max_groups=1))
    bench.stable()
    assert bench.join_code(bench.start_join(group_id="another")) is ErrorCode.group_max_size_reached
    with pytest.raises(ApiError) as refused:
        bench.start_commit(group_id="third").result()
    assert refused.value.code is ErrorCode.coordinator_not_available


def test_a_follower_that_asks_again_gets_the_same_answer() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    result = bench.start_join(follower.member_id).result()
    assert (result.error_code, result.generation_id, result.members) == (ErrorCode.none, 1, ())
    assert bench.state() is ClassicGroupState.STABLE
    assert bench.heartbeat(leader) is ErrorCode.none


@pytest.mark.parametrize("who", ["the leader", "a follower with other metadata"])
def test_a_changed_member_or_a_leader_begins_a_rebalance(who: str) -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    if who == "the leader":
        reply, other = bench.start_join(leader.member_id), follower
    else:
        reply = bench.start_join(follower.member_id, protocols={"range": subscription("other")})
        other = leader
    assert not reply.done
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    assert bench.heartbeat(other) is ErrorCode.rebalance_in_progress
    again = bench.start_join(other.member_id)
    assert reply.result().generation_id == again.result().generation_id == 2


def test_a_member_told_of_the_generation_may_ask_again_before_it_syncs() -> None:
    bench = Bench()
    member_id = bench.new_member_id()
    first = bench.start_join(member_id)
    bench.advance(0)
    assert bench.start_join(member_id).result() == first.result()


def test_a_second_request_of_a_waiting_member_replaces_the_first() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    first = bench.start_join(leader.member_id)
    second = bench.start_join(leader.member_id)
    assert bench.join_code(first) is ErrorCode.rebalance_in_progress
    bench.start_join(follower.member_id)
    assert second.result().generation_id == 2


def test_a_new_members_request_does_not_wait_for_ever() -> None:
    bench = Bench()
    (member,) = bench.stable(1, rebalance_ms=10 * NEW_MEMBER_JOIN_TIMEOUT_MS, session_ms=1_800_000)
    newcomer = bench.start_join(bench.new_member_id())
    bench.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert bench.join_code(newcomer) is ErrorCode.unknown_member_id
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    assert bench.start_join(member.member_id).result().generation_id == 2


def test_a_group_that_everybody_left_while_it_waits_takes_anybody_in() -> None:
    bench = Bench(ClassicSettings(initial_rebalance_delay_ms=3_000))
    first = bench.new_member_id()
    bench.start_join(first)
    bench.leave(MemberIdentity(first, None))
    second = bench.start_join(version=3, protocol_type="connect", protocols={"sessioned": b""})
    bench.advance(6_000)
    assert (second.result().error_code, second.result().protocol_type) == (ErrorCode.none, "connect")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"group_id": "x" * 32_768}, ErrorCode.invalid_group_id),
        ({"instance_id": "x" * 32_768}, ErrorCode.invalid_request),
        ({"instance_id": "x" * 32_767}, ErrorCode.invalid_request),
        ({"protocol_type": "x" * 32_768}, ErrorCode.invalid_request),
        ({"protocols": {"ü" * 16_384: b""}}, ErrorCode.invalid_request),
    ],
)
def test_names_that_no_record_has_a_place_for_are_refused(changed: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench()
    assert bench.join_code(bench.start_join(version=3, **changed)) is code
    assert bench.groups.list_groups() == []
