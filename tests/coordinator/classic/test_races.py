"""Operations that wait behind an append: the state that they find when their turn comes."""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Bench,
    Joined,
    subscription,
)
from tests.coordinator.classic.share_groups import make_share_group

TOPIC_ID = UUID(int=7)


def hold(bench: Bench) -> None:
    """Let an append of the group's partition be under way."""
    bench.log.held = True
    bench.start_commit(group_id=GROUP)


def hold_with_commit_of(bench: Bench, member: Joined) -> None:
    bench.log.held = True
    bench.start_commit(member=member.identity, generation_id=member.generation_id)


def go_on(bench: Bench) -> None:
    """End the appends under way, and run the operations behind them."""
    bench.log.held = False
    while bench.log.waiting:
        bench.log.release()


def test_a_heartbeat_keeps_a_member_whose_removal_waits_for_its_turn() -> None:
    bench = Bench()
    (member,) = bench.stable()
    hold_with_commit_of(bench, member)
    bench.advance(SESSION_MS)
    assert bench.heartbeat(member) is ErrorCode.none
    go_on(bench)
    assert bench.heartbeat(member) is ErrorCode.none
    bench.advance(SESSION_MS)
    assert bench.state() is ClassicGroupState.EMPTY


def test_a_session_that_ends_while_the_assignment_is_written_begins_anew() -> None:
    bench = Bench()
    replies = [bench.start_join(bench.new_member_id()) for _ in range(2)]
    bench.advance(0)
    leader, follower = (Joined(reply.result().member_id, reply.result().generation_id) for reply in replies)
    waiting = bench.start_sync(follower)
    bench.log.held = True
    bench.start_sync(leader, {follower.member_id: b"all"})
    bench.advance(SESSION_MS)
    go_on(bench)
    assert waiting.result().assignment == b"all"
    assert bench.state() is ClassicGroupState.STABLE
    assert bench.heartbeat(follower) is ErrorCode.none


def test_a_time_to_join_that_ends_in_the_queue_does_not_end_the_next_one() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    bench.start_join(first.member_id)
    while bench.now_ms < REBALANCE_MS - SESSION_MS:
        bench.advance(SESSION_MS // 2)
        bench.heartbeat(second)
    hold_with_commit_of(bench, second)
    bench.start_join(second.member_id)
    bench.start_join(first.member_id, protocols={"range": subscription("receipts")})
    bench.advance(SESSION_MS)
    go_on(bench)
    assert bench.state() is ClassicGroupState.PREPARING_REBALANCE
    assert bench.heartbeat(Joined(second.member_id, 2)) is ErrorCode.rebalance_in_progress


def test_offsets_that_are_being_committed_are_deleted_with_their_topic() -> None:
    bench = Bench()
    bench.log.held = True
    bench.start_commit(topic_id=TOPIC_ID)
    bench.groups.on_topics_deleted({TOPIC: TOPIC_ID})
    go_on(bench)
    assert bench.committed() is None


def test_a_group_that_is_being_made_is_deleted_once_it_is_there() -> None:
    bench = Bench()
    hold(bench)
    deleted = bench.groups.delete_group(GROUP)
    go_on(bench)
    deleted.result()
    assert bench.groups.list_groups() == []


def test_a_group_created_again_with_another_type_is_deleted_as_that_type() -> None:
    bench = Bench()
    bench.start_commit()
    bench.log.held = True
    first = bench.groups.delete_group(GROUP)
    made = bench.start_join()
    second = bench.groups.delete_group(GROUP)
    go_on(bench)
    first.result()
    assert bench.join_code(made) is ErrorCode.member_id_required
    second.result()
    make_share_group(bench, GROUP)
    assert [group.group_type for group in bench.groups.list_groups()] == ["share"]
