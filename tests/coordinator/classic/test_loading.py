"""Groups after a restart: which state is loaded, and which is lost."""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, SESSION_MS, Bench


def test_a_stable_group_goes_on_in_its_generation() -> None:
    bench = Bench()
    members = bench.stable(2)
    before = bench.classic.describe(GROUP)
    bench.restart()
    assert bench.classic.describe(GROUP) == before
    assert [bench.heartbeat(one) for one in members] == [ErrorCode.none, ErrorCode.none]
    assert bench.start_sync(members[1]).result().assignment == members[1].member_id.encode()


def test_members_have_a_whole_session_after_a_restart() -> None:
    bench = Bench()
    (member,) = bench.stable()
    bench.advance(SESSION_MS - 1)
    bench.restart()
    bench.advance(SESSION_MS - 1)
    assert bench.heartbeat(member) is ErrorCode.none
    bench.advance(SESSION_MS)
    assert bench.state() is ClassicGroupState.EMPTY


def test_a_rebalance_under_way_is_forgotten_and_its_members_join_again() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.start_join(leader.member_id)
    bench.restart()
    assert bench.state() is ClassicGroupState.STABLE
    assert bench.heartbeat(follower) is ErrorCode.none
    reply = bench.start_join(leader.member_id)
    bench.start_join(follower.member_id)
    assert reply.result().generation_id == 2


def test_ids_that_were_given_out_are_forgotten() -> None:
    bench = Bench()
    member_id = bench.new_member_id()
    bench.restart()
    assert bench.join_code(bench.start_join(member_id)) is ErrorCode.unknown_member_id
    assert bench.state() is ClassicGroupState.EMPTY


def test_a_new_group_that_cannot_be_written_is_not_there() -> None:
    bench = Bench()
    bench.log.failing = True
    assert bench.join_code(bench.start_join()) is ErrorCode.coordinator_not_available
    assert bench.groups.list_groups() == []


def test_a_timer_that_could_do_nothing_comes_again() -> None:
    bench = Bench()
    (member,) = bench.stable()
    bench.log.held = True
    first = bench.start_commit(member=member.identity, generation_id=1)
    bench.advance(SESSION_MS)
    bench.log.release()
    assert first.result() == [ErrorCode.none]
    bench.log.held = False
    while bench.log.waiting:
        bench.log.release()
    assert bench.state() is ClassicGroupState.EMPTY
