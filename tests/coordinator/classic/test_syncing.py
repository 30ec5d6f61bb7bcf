"""SyncGroup and Heartbeat: assignments and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, SESSION_MS, Bench, Joined


def test_each_member_gets_its_part_of_the_leaders_assignment() -> None:
    bench = Bench()
    members = bench.stable(3)
    assignments = [bench.start_sync(one).result().assignment for one in members]
    assert assignments == [one.member_id.encode() for one in members]
    assert bench.start_sync(members[0]).result()[1:3] == ("consumer", "range")


def test_a_member_without_an_assignment_gets_an_empty_one() -> None:
    bench = Bench()
    ids = [bench.new_member_id() for _ in range(2)]
    replies = [bench.start_join(one) for one in ids]
    bench.advance(0)
    leader, follower = (Joined(reply.result().member_id, 1) for reply in replies)
    waiting = bench.start_sync(follower)
    assert bench.start_sync(leader, {leader.member_id: b"all"}).result().assignment == b"all"
    assert waiting.result() == (ErrorCode.none, "consumer", "range", b"")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"member_id": "stranger"}, ErrorCode.unknown_member_id),
        ({"group_id": "elsewhere"}, ErrorCode.unknown_member_id),
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"generation_id": 0}, ErrorCode.illegal_generation),
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_name": "sticky"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.none),
    ],
)
def test_only_members_of_this_generation_sync(changed: dict[str, Any], code: ErrorCode) -> None:
    bench = Bench()
    (member,) = bench.stable()
    assert bench.start_sync(member, **changed).result().error_code is code


def test_while_members_join_there_is_nothing_to_sync() -> None:
    bench = Bench()
    _, follower = bench.stable(2)
    bench.start_join(bench.new_member_id())
    assert bench.start_sync(follower).result().error_code is ErrorCode.rebalance_in_progress


def test_a_second_request_of_a_waiting_member_replaces_the_first() -> None:
    bench = Bench()
    replies = [bench.start_join(bench.new_member_id()) for _ in range(1)]
    bench.advance(0)
    leader = Joined(replies[0].result().member_id, 1)
    bench.start_sync(leader, {leader.member_id: b"1"})
    follower_reply = bench.start_join(bench.new_member_id())
    again = bench.start_join(leader.member_id)
    follower = Joined(follower_reply.result().member_id, 2)
    first = bench.start_sync(follower)
    second = bench.start_sync(follower)
    assert first.result().error_code is ErrorCode.rebalance_in_progress
    bench.start_sync(Joined(again.result().member_id, 2), {follower.member_id: b"f"})
    assert second.result().assignment == b"f"


def test_no_sync_is_answered_before_the_assignment_is_written() -> None:
    bench = Bench()
    reply = bench.start_join(bench.new_member_id())
    bench.advance(0)
    leader = Joined(reply.result().member_id, 1)
    bench.log.held = True
    waiting = bench.start_sync(leader, {leader.member_id: b"all"})
    assert not waiting.done
    bench.log.release()
    assert waiting.result().assignment == b"all"


def test_an_assignment_that_cannot_be_written_is_refused_and_a_rebalance_begins() -> None:
    bench = Bench()
    reply = bench.start_join(bench.new_member_id())
    bench.advance(0)
    leader = Joined(reply.result().member_id, 1)
    bench.log.failing = True
    code = bench.start_sync(leader, {leader.member_id: b"all"}).result().error_code
    assert code is ErrorCode.coordinator_not_available
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    bench.log.failing = False
    assert bench.start_join(leader.member_id).result().generation_id == 2


class TestHeartbeat:
    def test_keeps_a_member_in_its_group(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        for _ in range(5):
            bench.advance(SESSION_MS - 1)
            assert bench.heartbeat(member) is ErrorCode.none

    def test_is_taken_before_the_assignment_is_there(self) -> None:
        bench = Bench()
        reply = bench.start_join(bench.new_member_id())
        bench.advance(0)
        assert bench.heartbeat(Joined(reply.result().member_id, 1)) is ErrorCode.none

    def test_of_another_generation_is_refused(self) -> None:
        bench = Bench()
        (member,) = bench.stable()
        assert bench.heartbeat(Joined(member.member_id, 0)) is ErrorCode.illegal_generation

    def test_of_a_stranger_is_refused(self) -> None:
        bench = Bench()
        assert bench.heartbeat(Joined("stranger", 1)) is ErrorCode.unknown_member_id
        code = bench.classic.heartbeat("", Joined("stranger", 1).identity, 1, now_ms=0)
        assert code is ErrorCode.invalid_group_id

    def test_succeeds_while_groups_are_loaded_so_that_members_stay(self) -> None:
        bench = Bench(loaded=False)
        assert bench.heartbeat(Joined("member", 1)) is ErrorCode.none


def test_nothing_else_goes_through_while_groups_are_loaded() -> None:
    bench = Bench(loaded=False)
    assert bench.join_code(bench.start_join()) is ErrorCode.coordinator_load_in_progress
    code = bench.start_sync(Joined("member", 1)).result().error_code
    assert code is ErrorCode.coordinator_load_in_progress


def test_members_that_wait_when_the_log_is_reopened_get_not_coordinator() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    joining = bench.start_join(leader.member_id)
    bench.reload()
    assert joining.result().error_code is ErrorCode.not_coordinator
    assert bench.heartbeat(follower) is ErrorCode.none
    assert bench.classic.describe(GROUP).members[0].assignment == leader.member_id.encode()
