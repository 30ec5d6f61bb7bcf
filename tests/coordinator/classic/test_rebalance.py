"""From one generation to the next: which members are awaited, for how long, and which are removed."""

from __future__ import annotations

import pytest

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.classic.membership import JoinReply
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import REBALANCE_MS, SESSION_MS, Bench

PATIENT = ClassicSettings(initial_rebalance_delay_ms=3_000)


def test_a_group_that_was_empty_waits_for_others() -> None:
    bench = Bench(PATIENT)
    reply = bench.start_join(bench.new_member_id())
    bench.advance(2_999)
    assert not reply.done
    bench.advance(1)
    assert reply.result().error_code is ErrorCode.none


def test_each_newcomer_prolongs_that_wait_as_far_as_the_rebalance_timeout() -> None:
    bench = Bench(PATIENT)
    replies: list[JoinReply] = []
    for _ in range(5):
        replies.append(bench.start_join(version=3, rebalance_ms=10_000))
        bench.advance(1_999)
    bench.advance(4)
    assert not any(reply.done for reply in replies)
    bench.advance(1)
    assert {len(reply.result().members) for reply in replies} == {0, 5}


def test_a_rebalance_ends_as_soon_as_all_have_joined() -> None:
    bench = Bench(PATIENT)
    leader, follower = bench.stable(2)
    first = bench.start_join(leader.member_id)
    assert not first.done
    second = bench.start_join(follower.member_id)
    assert first.result().generation_id == second.result().generation_id == 2


def test_a_member_that_does_not_join_in_time_is_removed() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, session_ms=1_800_000)
    reply = bench.start_join(leader.member_id)
    bench.advance(REBALANCE_MS - 1)
    assert not reply.done
    bench.advance(1)
    assert [one.member_id for one in reply.result().members] == [leader.member_id]
    assert bench.heartbeat(follower) is ErrorCode.unknown_member_id


def test_a_follower_leads_if_the_leader_does_not_join_in_time() -> None:
    bench = Bench()
    _, follower = bench.stable(2, session_ms=1_800_000)
    newcomer = bench.start_join(bench.new_member_id(), session_ms=1_800_000)
    reply = bench.start_join(follower.member_id, session_ms=1_800_000)
    bench.advance(REBALANCE_MS)
    assert reply.result().leader in {follower.member_id, newcomer.result().member_id}
    assert len({reply.result().leader, newcomer.result().leader}) == 1


def test_a_member_that_does_not_sync_in_time_is_removed_and_a_rebalance_begins() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, session_ms=1_800_000)
    replies = [bench.start_join(one.member_id, session_ms=1_800_000) for one in (leader, follower)]
    again = [reply.result() for reply in replies]
    waiting = bench.start_sync(follower, generation_id=again[1].generation_id)
    bench.advance(REBALANCE_MS)
    assert waiting.result().error_code is ErrorCode.rebalance_in_progress
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    assert bench.start_join(follower.member_id).result().leader == follower.member_id


def test_a_member_that_sends_no_heartbeat_is_removed() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.advance(SESSION_MS - 1)
    assert bench.heartbeat(leader) is ErrorCode.none
    bench.advance(1)
    assert bench.heartbeat(leader) is ErrorCode.rebalance_in_progress
    assert bench.heartbeat(follower) is ErrorCode.unknown_member_id
    assert bench.start_join(leader.member_id).result().generation_id == 2


def test_the_last_members_end_leaves_an_empty_group_of_the_next_generation() -> None:
    bench = Bench()
    (member,) = bench.stable()
    bench.advance(SESSION_MS)
    assert bench.state() is ClassicGroupState.EMPTY
    assert bench.heartbeat(member) is ErrorCode.unknown_member_id
    bench.restart()
    assert bench.state() is ClassicGroupState.EMPTY
    assert bench.stable()[0].generation_id == 3


def test_a_member_that_waits_for_an_answer_needs_no_heartbeat() -> None:
    bench = Bench()
    leader, _ = bench.stable(2, session_ms=SESSION_MS)
    reply = bench.start_join(leader.member_id)
    bench.advance(SESSION_MS * 2)
    assert reply.result().error_code is ErrorCode.none


@pytest.mark.parametrize("leaver", [0, 1])
def test_a_member_that_leaves_begins_a_rebalance(leaver: int) -> None:
    bench = Bench()
    members = bench.stable(2)
    ((_, code),) = bench.leave(members[leaver].identity)
    assert code is ErrorCode.none
    stays = members[1 - leaver]
    assert bench.heartbeat(stays) is ErrorCode.rebalance_in_progress
    assert bench.start_join(stays.member_id).result().leader == stays.member_id


def test_leaving_ends_the_wait_of_the_members_that_have_joined() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    reply = bench.start_join(leader.member_id)
    bench.leave(follower.identity)
    assert len(reply.result().members) == 1


def test_a_member_that_was_to_join_may_leave_as_well() -> None:
    bench = Bench()
    (member,) = bench.stable()
    pending = bench.new_member_id()
    waiting = bench.start_join(member.member_id)
    assert not waiting.done
    ((_, code),) = bench.leave(MemberIdentity(pending, None))
    assert code is ErrorCode.none
    assert waiting.result().generation_id == 2


def test_each_leaving_member_has_its_own_outcome() -> None:
    bench = Bench()
    (member,) = bench.stable()
    left = bench.leave(MemberIdentity("stranger", None), member.identity, MemberIdentity("", "desk"))
    codes = [one.error_code for one in left]
    assert codes == [ErrorCode.unknown_member_id, ErrorCode.none, ErrorCode.unknown_member_id]
    assert bench.state() is ClassicGroupState.EMPTY


def test_no_member_can_leave_an_unknown_group() -> None:
    ((_, code),) = Bench().leave(MemberIdentity("stranger", None))
    assert code is ErrorCode.unknown_member_id
