"""A new broker on the files of a closed or killed one (wire sheet, section 7).

Acknowledged records are never delivered again. Records that were acquired when the process was killed come
back with one delivery less, because acquiring is never written. A clean stop closes the connections first, so
these records come back with their count.
"""

from collections.abc import Awaitable, Callable

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.harness import open_lab
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, RENEW, ShareMember

End = Callable[[Stage], Awaitable[None]]


async def close(stage: Stage) -> None:
    await stage.lab.restart()


async def kill(stage: Stage) -> None:
    await stage.lab.crash()


both_ends = pytest.mark.parametrize("end", [close, kill])


@both_ends
async def test_acknowledged_records_are_not_delivered_again(stage: Stage, end: End) -> None:
    await stage.produce(10)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 3, ACCEPT), (4, 4, REJECT), (7, 8, ACCEPT)])
    await end(stage)
    assert await stage.offsets() == (5, 3)
    assert await stage.member().take() == [(5, 6, 1), (9, 9, 1)]


@both_ends
async def test_a_released_record_keeps_its_count(stage: Stage, end: End) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 1, RELEASE), (2, 2, ACCEPT)])
    await end(stage)
    assert await stage.member().take() == [(0, 1, 2), (3, 3, 1)]


async def test_acquired_records_come_back_with_one_delivery_less_after_a_kill(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 1, RELEASE)])
    await member.take()
    await stage.lab.crash()
    assert await stage.member().take() == [(0, 1, 2), (2, 3, 1)]


async def test_connections_that_close_before_a_clean_end_keep_the_count(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    member.client.disconnect()
    await stage.lab.restart()
    assert await stage.member().take() == [(0, 3, 2)]


@both_ends
async def test_an_archived_record_stays_so(stage: Stage, end: End) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    await stage.produce(2)
    for _ in range(2):
        member = stage.member()
        await member.take(epoch=0)
        await member.acknowledge([(0, 1, RELEASE)])
    await end(stage)
    assert await stage.member().take() == []
    assert await stage.offsets() == (2, 0)


@both_ends
async def test_a_lock_that_expired_is_recorded(stage: Stage, end: End) -> None:
    await stage.produce(1)
    await stage.member().take()
    await stage.lab.advance(30_000)
    await end(stage)
    assert await stage.member().take() == [(0, 0, 2)]


@both_ends
async def test_a_renewal_is_not_recorded(stage: Stage, end: End) -> None:
    await stage.produce(1)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 0, RENEW)], renew=True)
    await end(stage)
    assert await stage.member().take() == [(0, 0, 1)]


@both_ends
async def test_share_sessions_end_with_the_broker(stage: Stage, end: End) -> None:
    member = stage.member()
    await member.fetch()
    await end(stage)
    assert (await member.fetch()).error == ErrorCode.share_session_not_found


@both_ends
async def test_a_partition_without_a_leader_yet_refuses_acknowledgements(stage: Stage, end: End) -> None:
    await stage.produce(1)
    await stage.member().take()
    await end(stage)
    member = stage.member()
    await member.fetch(max_records=0)
    assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [ErrorCode.unknown_topic_or_partition]


@both_ends
async def test_epochs_never_go_back(stage: Stage, end: End) -> None:
    lab = stage.lab
    await stage.produce(3)
    member = stage.member()
    await member.take()
    epochs: list[tuple[int, int, int]] = []
    for offset in range(3):
        await member.accept(offset, offset)
        leader = next(iter(lab.broker.share_partitions))
        epochs.append(
            (lab.broker.metadata.node_epoch, leader.image.checkpoint_epoch, leader.log.leader_epoch)
        )
        described = await lab.admin.ask("share_group_describe", group_ids=[GROUP])
        assert described.groups[0].group_epoch == 2
        await end(stage)
        member = stage.member()
        await member.take()
    assert epochs == sorted(epochs)
    assert len({node_epoch for node_epoch, _, _ in epochs}) == 3


@both_ends
async def test_many_rounds_deliver_each_record_until_it_is_acknowledged(stage: Stage, end: End) -> None:
    await stage.produce(5, 5, 5, 5)
    accepted: list[int] = []
    for _ in range(10):
        member = stage.member()
        acquired = await member.take(5)
        assert not set(accepted).intersection(
            offset for first, last, _ in acquired for offset in range(first, last + 1)
        )
        first = acquired[0][0]
        await member.accept(first, first + 1)
        accepted += [first, first + 1]
        await end(stage)
    assert sorted(accepted) == list(range(20))
    assert await stage.offsets() == (20, 0)


@both_ends
async def test_chains_of_deltas_are_followed_over_their_checkpoints(end: End) -> None:
    setting = {"share__coordinator__snapshot__update__records__per__snapshot": "3"}
    async with open_lab(**setting) as lab:
        stage = await make_stage(lab)
        await stage.produce(20)
        member = stage.member()
        await member.take()
        for offset in range(0, 20, 2):
            await member.accept(offset, offset)
        await end(stage)
        assert await stage.offsets() == (1, 10)
        assert await stage.member().take() == [(offset, offset, 1) for offset in range(1, 20, 2)]


@both_ends
async def test_reset_offsets_hold(stage: Stage, end: End) -> None:
    await stage.produce(5)
    member = stage.member()
    await member.take()
    await member.accept(0, 4)
    await member.heartbeat(-1)
    altered = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 2}]}
    await stage.lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[altered])
    await end(stage)
    assert await stage.offsets() == (2, 3)
    assert await stage.member().take() == [(2, 4, 1)]


@both_ends
async def test_a_deleted_group_is_gone_and_a_new_one_of_its_name_starts_again(stage: Stage, end: End) -> None:
    await stage.produce(3)
    member = stage.member()
    await member.take()
    await member.accept(0, 2)
    await member.heartbeat(-1)
    await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
    await end(stage)
    assert (await stage.lab.admin.ask("list_groups")).groups == ()
    await stage.member().join("t")
    assert await stage.member().take() == [(0, 2, 1)]


@both_ends
async def test_the_log_start_is_followed(stage: Stage, end: End) -> None:
    await stage.produce(6)
    member = stage.member()
    await member.take()
    await member.accept(0, 0)
    await stage.lab.delete_records("t", 4)
    await end(stage)
    assert await stage.offsets() == (4, 2)
    assert await stage.member().take() == [(4, 5, 1)]


async def test_two_groups_on_one_partition_come_back_each_for_itself(stage: Stage) -> None:
    await stage.produce(6)
    await stage.lab.configure_group("other", auto_offset_reset="earliest")
    other = ShareMember(stage.lab.client(), [stage.partition], group_id="other")
    await other.join("t")
    member = stage.member()
    await member.take()
    await other.take()
    for offset in (0, 2):
        await member.accept(offset, offset)
        await other.accept(offset + 1, offset + 1)
    await stage.lab.crash()
    assert await stage.member().take() == [(1, 1, 1), (3, 5, 1)]
    again = ShareMember(stage.lab.client(), [stage.partition], group_id="other")
    assert await again.take() == [(0, 0, 1), (2, 2, 1), (4, 5, 1)]
