"""Idle groups: their state becomes a checkpoint, and their leaders are unloaded until they are needed."""

from __future__ import annotations

import pytest

from barnabas.protocol.control_record import ControlType
from barnabas.share.leader.idle_leaders import LOOK_INTERVAL_MS
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import Stage, with_log_store_only
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, fetched


def leaders(stage: Stage) -> list[SharePartitionLeader]:
    return list(stage.lab.broker.share_partitions)


def log_of(stage: Stage) -> PartitionLog:
    log = stage.lab.broker.log_directory.find("t", 0)
    assert log is not None
    return log


def newest_kind(stage: Stage) -> int:
    """The type of the group's newest control record."""
    return next(log_of(stage).share_records.newest(group_hash(GROUP))).kind


async def test_an_idle_leader_is_dropped_and_loaded_again(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 1, ACCEPT), (2, 2, RELEASE), (3, 3, ACCEPT)])
    assert len(leaders(stage)) == 1
    await stage.lab.advance(3 * LOOK_INTERVAL_MS)
    assert leaders(stage) == []
    assert await stage.offsets() == (2, 1)
    assert await stage.member().take() == [(2, 2, 2)]


async def test_a_leader_that_is_fetched_from_stays(stage: Stage) -> None:
    member = stage.member()
    await member.fetch()
    (leader,) = leaders(stage)
    for _ in range(12):
        await stage.lab.advance(LOOK_INTERVAL_MS // 3)
        await member.fetch()
    assert leaders(stage) == [leader]


async def test_a_waiting_fetch_gets_records_after_the_leader_was_dropped(stage: Stage) -> None:
    member = stage.member()
    await member.fetch()
    waiting = member.start_fetch(max_wait=10 * LOOK_INTERVAL_MS)
    await stage.lab.advance(3 * LOOK_INTERVAL_MS)
    await stage.produce(2)
    ((first, last, count),) = fetched(await stage.lab.answered(waiting)).acquired
    assert (last - first, count) == (1, 1)


async def test_a_leader_with_locked_records_stays_until_the_locks_end(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, record_lock_duration_ms=60_000)
    await stage.produce(2)
    await stage.member().take()
    await stage.lab.advance(LOOK_INTERVAL_MS - 1)
    assert len(leaders(stage)) == 1
    await stage.lab.advance(4 * LOOK_INTERVAL_MS)
    assert leaders(stage) == []
    assert await stage.member().take() == [(0, 1, 2)]


@with_log_store_only
async def test_the_recorded_state_of_an_idle_group_becomes_a_checkpoint(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.accept(0, 1)
    await member.accept(3, 3)
    assert newest_kind(stage) == ControlType.SHARE_DELTA
    await stage.lab.advance(3 * LOOK_INTERVAL_MS)
    assert newest_kind(stage) == ControlType.SHARE_CHECKPOINT
    end_offset = log_of(stage).log_end_offset
    await stage.lab.advance(10 * LOOK_INTERVAL_MS)
    assert log_of(stage).log_end_offset == end_offset


@with_log_store_only
@pytest.mark.parametrize("killed", [False, True])
async def test_a_clean_stop_writes_a_checkpoint_and_a_kill_does_not(stage: Stage, killed: bool) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.accept(0, 1)
    await (stage.lab.crash() if killed else stage.lab.restart())
    assert await stage.offsets() == (2, 2)
    kind = ControlType.SHARE_DELTA if killed else ControlType.SHARE_CHECKPOINT
    assert newest_kind(stage) == kind


@with_log_store_only
async def test_a_clean_stop_with_nothing_new_writes_nothing(stage: Stage) -> None:
    await stage.produce(4)
    member = stage.member()
    await member.take()
    await member.accept(0, 3)
    await stage.lab.restart()
    await stage.offsets()
    end_offset = log_of(stage).log_end_offset
    await stage.lab.restart()
    await stage.offsets()
    assert log_of(stage).log_end_offset == end_offset
