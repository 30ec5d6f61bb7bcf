"""New checkpoints for groups whose newest checkpoints keep old segments from being deleted."""

from __future__ import annotations

import pytest

from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.log_config import LogConfig
from tests.broker.network.edge_fakes import settle
from tests.share.leader.leading import PARTITION, Leading, acknowledge, leading
from tests.storage.log_building import COLLIDING, NOW_MS, append

SMALL_SEGMENTS = LogConfig(segment_bytes=400, retention_ms=1000)


async def segmented() -> Leading:
    """Segments of a batch or two; the first ones hold the beginning of the group."""
    stage = await leading(config=SMALL_SEGMENTS)
    stage.log.pin_listeners.append(lambda log, group_ids: stage.pinned.renew(PARTITION, log, group_ids))
    return stage


async def begun(
    group_id: str = "group", incarnations: dict[str, int] | None = None
) -> tuple[Leading, SharePartitionLeader]:
    stage = await segmented()
    stage.groups.incarnations = incarnations or stage.groups.incarnations
    leader = stage.lead(group_id)
    for _ in range(8):
        append(stage.log, 1, value=b"v" * 150)
    assert stage.log.segment_count > 3
    return stage, leader


async def test_an_idle_group_is_checkpointed_anew_and_lets_them_go() -> None:
    stage, leader = await begun()
    await stage.log.enforce_retention(NOW_MS + 10_000)
    checkpoint = stage.records()[-1][1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert leader.image.checkpoint_epoch >= 2
    await stage.log.enforce_retention(NOW_MS + 10_000)
    assert stage.log.log_start_offset >= 8
    assert leader.core.spso == stage.log.log_start_offset


async def test_a_group_without_a_leader_is_loaded_for_it() -> None:
    stage, _ = await begun()
    stage.share_partitions.forget(stage.key())
    await stage.log.enforce_retention(NOW_MS + 10_000)
    await stage.log.enforce_retention(NOW_MS + 10_000)
    assert stage.log.log_start_offset >= 8
    assert stage.share_partitions.get(stage.key()) is not None


async def test_the_state_of_a_group_that_is_gone_ends() -> None:
    stage, _ = await begun()
    stage.share_partitions.forget(stage.key())
    del stage.groups.incarnations["group"]
    await stage.log.enforce_retention(NOW_MS + 10_000)
    newest = stage.records()[-1][1]
    assert isinstance(newest, ShareCheckpoint)
    assert newest.deleted
    await stage.log.enforce_retention(NOW_MS + 10_000)
    assert stage.log.log_start_offset >= 8


async def test_state_that_is_being_reset_is_left_alone() -> None:
    stage, _ = await begun()
    stage.share_partitions.hold_back(stage.key(), Completion[None]())
    before = len(stage.records())
    stage.pinned.renew(PARTITION, stage.log, ["group"])
    assert len(stage.records()) == before
    assert stage.share_partitions.get(stage.key()) is None


@pytest.mark.parametrize(("idle", "busy"), [COLLIDING, COLLIDING[::-1]])
@pytest.mark.parametrize("busy_is_gone", [False, True])
async def test_group_keeps_its_state_beside_another_of_the_same_hash(
    idle: str, busy: str, busy_is_gone: bool
) -> None:
    stage = await segmented()
    stage.groups.incarnations = {idle: 1, busy: 2}
    append(stage.log, 1)
    leader = stage.lead(idle)
    stage.fetch(leader)
    acknowledge(leader, 0, 0)
    stage.share_partitions.forget(stage.key(idle))
    for _ in range(8):
        append(stage.log, 1, value=b"v" * 150)
    image = stage.lead(busy).image
    if busy_is_gone:
        stage.share_partitions.forget(stage.key(busy))
        stage.partition_store.reset(busy, image, deleted=True)
    await stage.log.enforce_retention(NOW_MS + 10_000)
    stage.share_partitions.forget(stage.key(idle))
    assert stage.partition_store.load(idle, 1) is not None
    await stage.log.enforce_retention(NOW_MS + 10_000)
    assert stage.log.log_start_offset >= 8
    assert stage.partition_store.load(idle, 1) is not None


async def test_group_that_is_gone_ends_beside_another_of_the_same_hash() -> None:
    stage, _ = await begun(gone := COLLIDING[0], {COLLIDING[0]: 1, COLLIDING[1]: 1})
    stage.lead(COLLIDING[1])
    stage.share_partitions.forget(stage.key(gone))
    del stage.groups.incarnations[gone]
    await stage.log.enforce_retention(NOW_MS + 10_000)
    newest = [record for _, record in stage.records(gone) if record.group_id == gone][-1]
    assert isinstance(newest, ShareCheckpoint)
    assert newest.deleted


async def test_groups_without_state_get_none() -> None:
    stage = await leading()
    stage.pinned.renew(PARTITION, stage.log, ["group", "nobody"])
    await settle()
    assert stage.log.log_end_offset == 0
