"""After a loss of power no share state is missing: none was removed because of checkpoints that were lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

import pytest

from barnabas.storage.directory.checkpoints import Checkpoints
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.cleaner.dirty_logs import SMALL, clean, roll
from tests.storage.log_building import (
    KEY,
    NOW_MS,
    TOPIC_ID,
    append,
    append_checkpoint,
    append_deltas,
    open_log,
)
from tests.storage.memory_filesystem import MemoryFileSystem

P = ParamSpec("P")
T = TypeVar("T")

CONFIG = replace(SMALL, retention_ms=1000)
LATE_MS = NOW_MS + 10_000


async def retain(log: PartitionLog) -> object:
    return await log.enforce_retention(LATE_MS)


REMOVALS = pytest.mark.parametrize("remove", [clean, retain], ids=["cleaned", "expired"])


async def state_log(filesystem: MemoryFileSystem) -> PartitionLog:
    """A group's checkpoint at 2 and its deltas from 3 to 11, all durable, in a segment that is closed."""
    log = await open_log(filesystem, config=CONFIG)
    append(log, 2)
    append_checkpoint(log)
    append_deltas(log, 9)
    append(log)
    await roll(log)
    return log


async def after_power_loss(filesystem: MemoryFileSystem, log: PartitionLog) -> PartitionLog:
    return await open_log(
        filesystem.after_power_loss(),
        config=CONFIG,
        recovery_point=log.recovery_point,
        log_start_offset=min(log.log_start_offset, log.recovery_point),
    )


@REMOVALS
async def test_a_checkpoint_that_replaced_removed_ones_is_durable(
    remove: Callable[[PartitionLog], Awaitable[object]],
) -> None:
    filesystem = MemoryFileSystem()
    log = await state_log(filesystem)
    append_checkpoint(log)
    size_bytes = log.size_bytes
    await remove(log)
    assert log.size_bytes < size_bytes
    left = await after_power_loss(filesystem, log)
    assert left.share_records.checkpoint_offsets == {"group": 13}


@REMOVALS
async def test_deltas_behind_the_flush_keep_their_checkpoint(
    remove: Callable[[PartitionLog], Awaitable[object]],
) -> None:
    filesystem = MemoryFileSystem()
    log = await state_log(filesystem)
    append_deltas(log)
    await log.flush()
    append_checkpoint(log)
    await remove(log)
    left = await after_power_loss(filesystem, log)
    assert left.share_records.checkpoint_offsets == {"group": 14}
    assert next(left.share_records.newest(group_hash("group"))).offset == 14


@REMOVALS
async def test_a_tombstone_that_replaced_removed_state_is_durable(
    remove: Callable[[PartitionLog], Awaitable[object]],
) -> None:
    filesystem = MemoryFileSystem()
    log = await state_log(filesystem)
    append_checkpoint(log, deleted=True)
    await remove(log)
    left = await after_power_loss(filesystem, log)
    assert (left.log_end_offset, left.share_records.checkpoint_offsets) == (14, {})


class InterruptedFileSystem(MemoryFileSystem):
    """Calls `meanwhile` once, between a flush's sync of the records and its index entries."""

    meanwhile: Callable[[], object] | None = None

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.meanwhile is not None and getattr(function, "__name__", "") == "_write_indexes":
            self.meanwhile()
            self.meanwhile = None
        return await super().run(function, *args, **kwargs)


async def test_checkpoints_during_the_flush_remove_nothing_more() -> None:
    filesystem = InterruptedFileSystem()
    log = await state_log(filesystem)
    append_deltas(log)
    append(log, timestamp_ms=LATE_MS)
    filesystem.meanwhile = lambda: append_checkpoint(log)
    assert await log.enforce_retention(LATE_MS) == 0
    assert (await after_power_loss(filesystem, log)).share_records.checkpoint_offsets == {"group": 2}
    assert await log.enforce_retention(LATE_MS) == 1
    assert (await after_power_loss(filesystem, log)).share_records.checkpoint_offsets == {"group": 15}


@REMOVALS
async def test_nothing_is_flushed_if_nothing_is_removed(
    remove: Callable[[PartitionLog], Awaitable[object]],
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=replace(CONFIG, retention_ms=-1))
    append(log, 2)
    await roll(log)
    append_checkpoint(log)
    await remove(log)
    assert log.recovery_point == 2


async def test_a_retention_round_leaves_the_state_of_an_idle_group() -> None:
    filesystem = MemoryFileSystem()
    now_ms = NOW_MS
    directory = await LogDirectory.open(filesystem, "/data", node_id=1, wall_ms=lambda: now_ms)
    log = await directory.log(*KEY, TOPIC_ID, CONFIG)
    append(log, 2)
    append_checkpoint(log)
    append(log)
    await roll(log)
    await directory.flush()
    now_ms = LATE_MS
    append(log, timestamp_ms=now_ms)
    append_checkpoint(log)
    await directory.retain()
    assert log.log_start_offset == 4
    left = await left_of(filesystem)
    assert left.share_records.checkpoint_offsets == {"group": 5}


async def test_the_log_start_is_not_ahead_of_the_durable_records() -> None:
    filesystem = MemoryFileSystem()
    directory = await LogDirectory.open(filesystem, "/data", node_id=1, wall_ms=lambda: NOW_MS)
    log = await directory.log(*KEY, TOPIC_ID, LogConfig())
    append(log, 500)
    append_checkpoint(log)
    await directory.flush()
    append(log, 500)
    log.delete_records(-1)
    other = await directory.log("other", 0, TOPIC_ID, LogConfig())
    append(other)
    await other.flush()
    await Checkpoints(filesystem, "/data").write([log, other])
    left = await left_of(filesystem)
    assert (left.log_start_offset, left.log_end_offset) == (501, 501)
    assert left.share_records.checkpoint_offsets == {"group": 500}


async def left_of(filesystem: MemoryFileSystem) -> PartitionLog:
    """The log in the directory after a loss of power."""
    left = filesystem.after_power_loss()
    left.directories.add("/data")
    directory = await LogDirectory.open(left, "/data", node_id=1, wall_ms=lambda: LATE_MS)
    return await directory.log(*KEY, TOPIC_ID, LogConfig())
