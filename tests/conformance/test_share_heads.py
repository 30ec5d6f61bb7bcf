"""The positions of groups after crashes, with any share snapshot beside their log: newer, older, damaged or
missing.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.identity import TopicIdPartition
from barnabas.share.sweep import sweep
from barnabas.storage.format.share_snapshot import (
    ShareSnapshot,
    decode_share_snapshot,
    encode_share_snapshot,
)
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.harness import DATA_DIRECTORY, Lab
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember

pytestmark = with_log_store_only

SNAPSHOT = f"{DATA_DIRECTORY}/t-0/share-snapshot"
DAY_MS = 24 * 3_600_000
LEFT = [1, 6, 10, 14, 18, 22]
"""The offsets of the records that the group has not accepted."""


@pytest.fixture
async def stage(lab: Lab) -> Stage:
    """The group has accepted two of every three records; a segment for each batch of them."""
    partition = TopicIdPartition(await lab.create_topic("t", segment__ms="1", retention__ms=str(DAY_MS)), 0)
    await lab.configure_group(GROUP, auto_offset_reset="earliest")
    stage = Stage(lab, partition)
    await stage.member().join("t")
    member = stage.member()
    for _ in range(6):
        await lab.advance(10)
        await stage.produce(3)
        taken = await member.take()
        base_offset = taken[-1][0]
        await member.acknowledge(
            [(base_offset, base_offset, ACCEPT), (base_offset + 2, base_offset + 2, ACCEPT)]
        )
    await lab.broker.log_directory.flush()
    assert log_of(stage).segment_count == 6
    return stage


def log_of(stage: Stage) -> PartitionLog:
    log = stage.lab.broker.log_directory.find("t", 0)
    assert log is not None
    return log


async def delivered(stage: Stage) -> list[int]:
    """The offsets of all records that the group still gets, once each."""
    member = stage.member()
    offsets: list[int] = []
    while taken := await member.take():
        offsets += [offset for first, last, _ in taken for offset in range(first, last + 1)]
    return offsets


async def delete_group(stage: Stage) -> None:
    await stage.member().heartbeat(-1)
    response = await stage.lab.admin.ask("delete_groups", groups_names=[GROUP])
    assert response.results[0].error_code == 0
    await stage.lab.broker.log_directory.flush()


def snapshot_in(stage: Stage) -> ShareSnapshot:
    return decode_share_snapshot(bytes(stage.lab.filesystem.files[SNAPSHOT]))


def write(stage: Stage, snapshot: ShareSnapshot) -> None:
    stage.lab.filesystem.files[SNAPSHOT] = bytearray(encode_share_snapshot(snapshot))


async def retained(stage: Stage) -> None:
    """All records are older than the retention, and retention has run."""
    await stage.lab.advance(2 * DAY_MS)
    await stage.lab.broker.log_directory.retain()


async def test_a_killed_broker_finds_the_group_by_the_snapshot(stage: Stage) -> None:
    before = await stage.offsets()
    assert snapshot_in(stage).checkpoint_offsets.keys() == {GROUP}
    await stage.lab.crash()
    assert await stage.offsets() == before == (1, 6)
    assert await delivered(stage) == LEFT


@pytest.mark.parametrize("what", ["missing", "torn", "stale", "of an older head", "of no group"])
async def test_the_group_keeps_its_position_with_any_snapshot(stage: Stage, what: str) -> None:
    stale = snapshot_in(stage)
    for leader in list(stage.lab.broker.share_partitions):
        await leader.checkpoint()
    await stage.lab.advance(10)
    await stage.produce(1)
    await stage.lab.broker.log_directory.flush()
    newest = snapshot_in(stage)
    assert newest.checkpoint_offsets[GROUP] > stale.checkpoint_offsets[GROUP]
    content = stage.lab.filesystem.files[SNAPSHOT]
    if what == "missing":
        del stage.lab.filesystem.files[SNAPSHOT]
    elif what == "torn":
        del content[len(content) // 2 :]
    elif what == "stale":
        write(stage, stale)
    elif what == "of an older head":
        write(stage, newest._replace(checkpoint_offsets=stale.checkpoint_offsets))
    else:
        write(stage, newest._replace(checkpoint_offsets={}))
    before = await stage.offsets()
    await stage.lab.crash()
    assert await stage.offsets() == before
    assert await delivered(stage) == [*LEFT, 26]


@pytest.mark.parametrize("what", ["as it was left", "missing", "of before the deletion", "naming the group"])
async def test_a_deleted_group_never_comes_back(stage: Stage, what: str) -> None:
    before = snapshot_in(stage)
    await delete_group(stage)
    for _ in range(2):
        await stage.lab.advance(10)
        await stage.produce(1)
    await stage.lab.broker.log_directory.flush()
    after = snapshot_in(stage)
    assert after.checkpoint_offsets == {}
    if what == "missing":
        del stage.lab.filesystem.files[SNAPSHOT]
    elif what == "of before the deletion":
        write(stage, before)
    elif what == "naming the group":
        write(stage, after._replace(checkpoint_offsets=before.checkpoint_offsets))
    await stage.lab.crash()
    assert (await stage.lab.admin.ask("list_groups")).groups == ()
    await stage.member().join("t")
    first, _, count = (await stage.member().take())[0]
    assert (first, count) == (0, 1), "a group of that name begins anew"
    await retained(stage)
    assert log_of(stage).share_records.checkpoint_offsets.keys() == {GROUP}


async def test_records_go_although_the_snapshot_names_a_deleted_group(stage: Stage) -> None:
    before = snapshot_in(stage)
    await delete_group(stage)
    await stage.lab.advance(10)
    await stage.produce(1)
    await stage.lab.broker.log_directory.flush()
    write(stage, snapshot_in(stage)._replace(checkpoint_offsets=before.checkpoint_offsets))
    await stage.lab.crash()
    await stage.lab.produce(stage.partition.topic_id, 1)
    await retained(stage)
    assert log_of(stage).share_records.earliest_offset == log_of(stage).log_end_offset
    assert log_of(stage).log_start_offset > before.checkpoint_offsets[GROUP]


async def test_segments_stay_for_a_group_that_is_missing_in_the_snapshot(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "SWEEP_INTERVAL_MS", 3 * DAY_MS)  # nothing loads the group before retention
    snapshot = snapshot_in(stage)
    write(stage, snapshot._replace(checkpoint_offsets={}))
    await stage.lab.crash()
    await stage.produce(1)
    await retained(stage)
    assert log_of(stage).log_start_offset == 0, "the group's only checkpoint was in the first segment"
    assert log_of(stage).share_records.checkpoint_offsets[GROUP] > snapshot.checkpoint_offsets[GROUP]
    await stage.lab.broker.log_directory.retain()
    assert log_of(stage).log_start_offset > 0


async def test_loss_of_power_leaves_the_group_where_it_was_flushed(stage: Stage) -> None:
    before = await stage.offsets()
    await stage.lab.lose_power()
    assert await stage.offsets() == before
    assert await delivered(stage) == LEFT


async def test_two_groups_of_one_log_are_each_found(stage: Stage) -> None:
    await stage.lab.configure_group("other", auto_offset_reset="earliest")
    other = ShareMember(stage.lab.client(), [stage.partition], group_id="other")
    await other.join("t")
    await other.take()
    await other.accept(0, 1)
    await stage.lab.crash()
    assert await stage.offsets() == (1, 6)
    assert await stage.lab.offsets("other", stage.partition) == (2, 16)
