"""A group's written state changes by the replay of an append, and requests are answered after that."""

from __future__ import annotations

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, SESSION_MS, Bench, Joined, subscription

PROTOCOLS = {"range": subscription("invoices"), "sticky": subscription("invoices")}


def static_member(bench: Bench) -> Joined:
    replies = [bench.start_join(instance_id="desk", protocols=PROTOCOLS)]
    bench.advance(0)
    return bench.settle(replies, ["desk"])[0]


def test_a_new_group_is_listed_once_its_record_is_in_the_log() -> None:
    bench = Bench()
    bench.log.held = True
    reply = bench.start_join()
    assert (reply.done, bench.groups.list_groups()) == (False, [])
    bench.log.release()
    assert bench.join_code(reply) is ErrorCode.member_id_required
    assert bench.state() is ClassicGroupState.EMPTY


def test_an_assignment_is_handed_out_once_it_is_in_the_log() -> None:
    bench = Bench()
    reply = bench.start_join(bench.new_member_id())
    bench.advance(0)
    member = Joined(reply.result().member_id, 1)
    bench.log.held = True
    waiting = bench.start_sync(member, {member.member_id: b"all"})
    assert not waiting.done
    assert bench.state() is ClassicGroupState.COMPLETING_REBALANCE
    bench.log.release()
    assert waiting.result().assignment == b"all"
    assert bench.state() is ClassicGroupState.STABLE


def test_a_static_member_has_its_old_id_until_its_return_is_in_the_log() -> None:
    bench = Bench()
    member = static_member(bench)
    bench.log.held = True
    reply = bench.start_join(instance_id="desk", protocols=PROTOCOLS)
    assert not reply.done
    assert bench.heartbeat(member) is ErrorCode.none
    bench.log.release()
    back = Joined(reply.result().member_id, 1, "desk")
    assert bench.heartbeat(member) is ErrorCode.fenced_instance_id
    assert bench.heartbeat(back) is ErrorCode.none


def test_a_return_that_cannot_be_written_changes_nothing() -> None:
    bench = Bench()
    static_member(bench)
    before = bench.classic.describe(GROUP)
    bench.log.failing = True
    changed = {"range": subscription("receipts"), "sticky": subscription("receipts")}
    refused = bench.start_join(instance_id="desk", protocols=changed)
    assert bench.join_code(refused) is ErrorCode.coordinator_not_available
    assert bench.classic.describe(GROUP) == before


def test_a_returned_member_keeps_all_its_protocols_in_memory() -> None:
    bench = Bench()
    static_member(bench)
    result = bench.start_join(instance_id="desk", protocols=PROTOCOLS).result()
    reply = bench.start_join(result.member_id, instance_id="desk", protocols={"sticky": PROTOCOLS["sticky"]})
    assert (reply.result().generation_id, reply.result().protocol_name) == (2, "sticky")


def test_a_group_is_empty_once_that_is_in_the_log() -> None:
    bench = Bench()
    (member,) = bench.stable()
    bench.log.held = True
    left = bench.classic.leave(GROUP, [member.identity], now_ms=bench.now_ms)
    assert (left.done, bench.state()) == (False, ClassicGroupState.PREPARING_REBALANCE)
    bench.log.release()
    assert left.result()[0].error_code is ErrorCode.none
    assert bench.state() is ClassicGroupState.EMPTY


def test_members_are_gone_also_if_the_empty_generation_cannot_be_written() -> None:
    bench = Bench()
    bench.stable()
    bench.log.failing = True
    bench.advance(SESSION_MS)
    assert bench.state() is ClassicGroupState.EMPTY
    assert bench.classic.describe(GROUP).members == []


def test_the_state_in_memory_is_the_state_that_a_restart_loads() -> None:
    bench = Bench()
    static_member(bench)
    bench.start_join(instance_id="desk", protocols=PROTOCOLS)
    described = bench.classic.describe(GROUP)
    bench.restart()
    assert bench.classic.describe(GROUP) == described
