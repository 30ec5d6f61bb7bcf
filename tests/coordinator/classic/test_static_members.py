"""Static members (KIP-345): an instance id that outlives its member id."""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import REBALANCE_MS, SESSION_MS, Bench, Joined, subscription


def static_group(bench: Bench, *names: str) -> list[Joined]:
    """A stable group of static members, the leader first."""
    replies = [bench.start_join(instance_id=name) for name in names]
    bench.advance(0)
    return bench.settle(replies, names)


def test_a_static_member_joins_without_asking_twice_under_a_name_of_its_own() -> None:
    bench = Bench()
    (member,) = static_group(bench, "desk")
    assert member.member_id.startswith("desk-")


def test_an_id_given_to_a_dynamic_member_is_no_static_ones() -> None:
    bench = Bench()
    member_id = bench.new_member_id()
    assert bench.join_code(bench.start_join(member_id, instance_id="desk")) is ErrorCode.invalid_request
    reply = bench.start_join(member_id)
    bench.advance(0)
    assert reply.result().error_code is ErrorCode.none


def test_a_member_that_comes_back_gets_its_assignment_without_a_rebalance() -> None:
    bench = Bench()
    leader, follower = static_group(bench, "desk", "shelf")
    result = bench.start_join(instance_id="shelf").result()
    assert result.member_id != follower.member_id
    assert (result.generation_id, result.leader, result.skip_assignment) == (1, leader.member_id, False)
    back = Joined(result.member_id, 1, "shelf")
    assert bench.start_sync(back).result().assignment == follower.member_id.encode()
    assert bench.state() is ClassicGroupState.STABLE
    assert bench.heartbeat(leader) is ErrorCode.none


def test_a_leader_that_comes_back_skips_the_assignment() -> None:
    bench = Bench()
    leader, _ = static_group(bench, "desk", "shelf")
    result = bench.start_join(instance_id="desk").result()
    assert (result.leader, result.skip_assignment, len(result.members)) == (result.member_id, True, 2)
    assert result.member_id != leader.member_id


def test_an_older_client_gets_the_old_leaders_id() -> None:
    bench = Bench()
    leader, _ = static_group(bench, "desk", "shelf")
    result = bench.start_join(instance_id="desk", version=8).result()
    assert (result.leader, result.skip_assignment, result.members) == (leader.member_id, False, ())


def test_the_old_member_id_is_fenced() -> None:
    bench = Bench()
    _, follower = static_group(bench, "desk", "shelf")
    bench.start_join(instance_id="shelf")
    assert bench.heartbeat(follower) is ErrorCode.fenced_instance_id
    assert bench.start_sync(follower).result().error_code is ErrorCode.fenced_instance_id
    code = bench.join_code(bench.start_join(follower.member_id, instance_id="shelf"))
    assert code is ErrorCode.fenced_instance_id
    ((_, left),) = bench.leave(follower.identity)
    assert left is ErrorCode.fenced_instance_id


def test_a_request_that_waits_under_the_old_id_is_fenced_at_once() -> None:
    bench = Bench()
    leader, follower = static_group(bench, "desk", "shelf")
    waiting = bench.start_join(leader.member_id, instance_id="desk")
    assert not waiting.done
    again = bench.start_join(instance_id="desk")
    assert bench.join_code(waiting) is ErrorCode.fenced_instance_id
    bench.start_join(follower.member_id, instance_id="shelf")
    assert again.result().generation_id == 2


def test_a_member_that_comes_back_between_joining_and_syncing_begins_a_rebalance() -> None:
    bench = Bench()
    leader, follower = static_group(bench, "desk", "shelf")
    replies = [bench.start_join(one.member_id, instance_id=one.instance_id) for one in (leader, follower)]
    assert {reply.result().generation_id for reply in replies} == {2}
    again = bench.start_join(instance_id="shelf")
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    bench.start_join(leader.member_id, instance_id="desk")
    assert again.result().generation_id == 3


def test_a_member_that_comes_back_with_another_protocol_begins_a_rebalance() -> None:
    bench = Bench()
    protocols = {"range": subscription(), "sticky": subscription()}
    replies = [bench.start_join(instance_id="desk", protocols=protocols)]
    bench.advance(0)
    bench.settle(replies, ["desk"])
    result = bench.start_join(instance_id="desk", protocols={"sticky": subscription()}).result()
    assert (result.generation_id, result.protocol_name) == (2, "sticky")


def test_a_member_whose_return_cannot_be_written_stays_under_its_old_id() -> None:
    bench = Bench()
    _, follower = static_group(bench, "desk", "shelf")
    bench.log.failing = True
    refused = bench.start_join(instance_id="shelf").result()
    assert (refused.error_code, refused.member_id) == (ErrorCode.coordinator_not_available, "")
    bench.log.failing = False
    assert bench.heartbeat(follower) is ErrorCode.none


def test_a_rebalance_does_not_wait_for_static_members_to_be_removed() -> None:
    bench = Bench()
    leader, follower = static_group(bench, "desk", "shelf")
    bench.heartbeat(follower)
    reply = bench.start_join(leader.member_id, instance_id="desk", session_ms=1_800_000)
    bench.advance(SESSION_MS)
    # The session of the other has ended: static or not, who is silent goes.
    assert len(reply.result().members) == 1


def test_members_that_sit_a_rebalance_out_keep_their_place_if_they_are_static() -> None:
    bench = Bench()
    replies = [
        bench.start_join(instance_id=name, session_ms=1_800_000, rebalance_ms=REBALANCE_MS)
        for name in ("desk", "shelf")
    ]
    bench.advance(0)
    leader, _ = bench.settle(replies, ["desk", "shelf"])
    reply = bench.start_join(leader.member_id, instance_id="desk", session_ms=1_800_000)
    bench.advance(REBALANCE_MS)
    assert {one.group_instance_id for one in reply.result().members} == {"desk", "shelf"}


def test_an_administrator_removes_a_static_member_by_its_name() -> None:
    bench = Bench()
    static_group(bench, "desk", "shelf")
    ((_, code),) = bench.leave(MemberIdentity("", "shelf"))
    assert code is ErrorCode.none
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE


def test_static_members_survive_a_restart() -> None:
    bench = Bench()
    leader, follower = static_group(bench, "desk", "shelf")
    bench.restart()
    assert bench.heartbeat(leader) is bench.heartbeat(follower) is ErrorCode.none
    assert bench.start_join(instance_id="shelf").result().generation_id == 1


def test_a_member_that_asks_again_before_its_first_answer_is_waited_for_as_long_as_others() -> None:
    bench = Bench()
    (member,) = bench.stable()
    bench.start_join(instance_id="desk")
    reply = bench.start_join(instance_id="desk")
    for _ in range(4):
        bench.advance(SESSION_MS // 2)
        bench.heartbeat(member)
    assert not reply.done


def back_before_it_has_synced(bench: Bench) -> tuple[Joined, Joined]:
    """The leader, which has synced, and a follower that joins a second time instead."""
    names = ("desk", "shelf")
    replies = [bench.start_join(instance_id=name) for name in names]
    bench.advance(0)
    leader, follower = (
        Joined(reply.result().member_id, 1, name) for reply, name in zip(replies, names, strict=True)
    )
    bench.start_sync(leader, {follower.member_id: b"all"})
    return leader, Joined(bench.start_join(instance_id="shelf").result().member_id, 1, "shelf")


def test_a_member_that_comes_back_before_it_has_synced_causes_no_rebalance_when_it_has() -> None:
    bench = Bench()
    leader, back = back_before_it_has_synced(bench)
    assert bench.start_sync(back).result().assignment == b"all"
    for _ in range(2 * REBALANCE_MS // SESSION_MS):
        bench.advance(SESSION_MS - 1)
        assert bench.heartbeat(leader) is ErrorCode.none
        assert bench.heartbeat(back) is ErrorCode.none


def test_a_member_that_comes_back_and_does_not_sync_is_removed() -> None:
    bench = Bench()
    leader, back = back_before_it_has_synced(bench)
    while bench.now_ms < REBALANCE_MS:
        bench.advance(SESSION_MS - 1)
        bench.heartbeat(leader)
        bench.heartbeat(back)
    assert bench.heartbeat(leader) is ErrorCode.rebalance_in_progress
    assert bench.heartbeat(back) is ErrorCode.unknown_member_id


def test_a_rebalance_timeout_of_nothing_does_not_keep_the_broker_busy() -> None:
    bench = Bench()
    (member,) = static_group(bench, "desk")
    bench.start_join(member.member_id, instance_id="desk", rebalance_ms=1)
    bench.settle([bench.start_join(member.member_id, instance_id="desk", rebalance_ms=1)], ["desk"])
    newcomer = bench.new_member_id()
    bench.start_join(newcomer, rebalance_ms=1)
    bench.leave(MemberIdentity(newcomer, None))
    bench.advance(1)
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    deadline_ms = bench.groups.next_deadline_ms()
    assert deadline_ms is not None and deadline_ms >= bench.now_ms + 100
