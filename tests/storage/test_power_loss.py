"""A log after a loss of power: it can be opened, and has all records that were promised to be durable.

The filesystem keeps synced contents, and the name of a new file once its directory was synced.
"""

import asyncio
import errno
import random
from contextlib import suppress

import pytest

from barnabas.storage.errors import LogOffline, StorageError
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import FlushPolicy, LogConfig
from tests.storage.log_building import (
    append,
    append_deltas,
    base_offsets_read,
    open_log,
    outcomes,
    sequenced,
    small_storage,
)
from tests.storage.memory_filesystem import MemoryFileSystem

ALWAYS = small_storage(flush=FlushPolicy.ALWAYS)


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def settled(appends: list[Append]) -> None:
    for appended in appends:
        with suppress(StorageError):
            await appended


async def left_of(filesystem: MemoryFileSystem, log: PartitionLog) -> PartitionLog:
    """The log of the next broker, which knows only the recovery point in the checkpoint file."""
    return await open_log(filesystem.after_power_loss(), recovery_point=log.recovery_point)


@pytest.mark.parametrize("flush_messages", [1, 2, 3, 4, 5])
async def test_flush_messages_offsets_are_never_left_unsynced_by_a_completed_append(
    filesystem: MemoryFileSystem, flush_messages: int
) -> None:
    log = await open_log(filesystem, config=LogConfig(flush_messages=flush_messages))
    for appended in (append, append_deltas, append, append, append_deltas, append):
        await appended(log)
        left = await left_of(filesystem, log)
        assert log.log_end_offset - left.log_end_offset < flush_messages


async def test_fewer_offsets_are_written_without_a_sync(filesystem: MemoryFileSystem) -> None:
    log = await open_log(filesystem, config=LogConfig(flush_messages=4))
    syncs_before = filesystem.sync_count
    assert [append(log).done, append_deltas(log).done, append(log).done] == [True] * 3
    assert filesystem.sync_count == syncs_before
    assert not append(log).done


@pytest.mark.parametrize("flush_messages", [1, 5])
async def test_a_sync_includes_the_segments_before_the_active_one(
    filesystem: MemoryFileSystem, flush_messages: int
) -> None:
    log = await open_log(filesystem, config=LogConfig(segment_bytes=200, flush_messages=flush_messages))
    for _ in range(10):
        await append(log, value=b"x" * 100)
    assert log.segment_count == 10
    assert base_offsets_read(await left_of(filesystem, log)) == list(range(10))


async def test_a_flush_under_way_does_not_hide_that_a_new_file_has_no_durable_name(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, config=LogConfig(segment_bytes=200), storage=ALWAYS)
    await append(log, value=b"x" * 100)
    filesystem.hold()
    rolling = append(log, value=b"x" * 100)
    flushing = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    filesystem.release()
    await rolling
    assert base_offsets_read(await left_of(filesystem, log)) == [0, 1]
    await flushing


async def test_records_written_but_not_synced_are_made_durable_before_they_are_visible(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem)
    sequenced(log, 0)
    killed = filesystem.copy()
    again = await open_log(killed, storage=ALWAYS)
    assert (again.high_watermark, again.recovery_point) == (1, 1)
    assert outcomes([sequenced(again, 0)]) == [(0, 0)]
    assert base_offsets_read(await left_of(killed, log)) == [0]


async def test_a_log_whose_tail_cannot_be_made_durable_is_not_opened(filesystem: MemoryFileSystem) -> None:
    append(await open_log(filesystem))
    killed = filesystem.copy()
    killed.sync_error = errno.EIO
    with pytest.raises(LogOffline):
        await open_log(killed, storage=ALWAYS)
    assert killed.open_count == 0


async def test_no_append_is_confirmed_after_another_part_has_found_a_failure_of_the_disk(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem, storage=ALWAYS, config=LogConfig(index_interval_bytes=50))
    for _ in range(3):
        await append(log)
    filesystem.hold()
    filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, ".index"
    flushing = asyncio.create_task(log.flush())
    await asyncio.sleep(0)
    appends = [append(log)]
    await asyncio.sleep(0)
    appends += [append(log), append_deltas(log)]
    filesystem.release()
    with pytest.raises(LogOffline):
        await flushing
    await settled(appends)
    assert outcomes(appends) == [LogOffline] * 3
    assert base_offsets_read(await open_log(filesystem)) == [0, 1, 2]


@pytest.mark.seeds(20)
async def test_with_flush_always_nothing_that_was_done_or_seen_is_lost(seed: int) -> None:
    """Appends, flushes and kills in any order; power is lost at any point between."""
    chance = random.Random(seed)
    filesystem, recovery_point = MemoryFileSystem(), 0
    log = await open_log(filesystem, storage=ALWAYS, config=LogConfig(segment_bytes=400))
    for _ in range(40):
        match chance.randrange(8):
            case 0:
                await log.flush()
                recovery_point = log.recovery_point
            case 1:
                append(log)
                filesystem = filesystem.copy()
                log = await open_log(filesystem, storage=ALWAYS, recovery_point=recovery_point)
            case 2 | 3:
                await append_deltas(log)
            case _:
                await settled([append(log, chance.randrange(1, 4)) for _ in range(chance.randrange(1, 4))])
        left = await open_log(filesystem.after_power_loss(), recovery_point=recovery_point)
        assert left.log_end_offset >= log.log_end_offset
        assert base_offsets_read(left)[: len(base_offsets_read(log))] == base_offsets_read(log)


@pytest.mark.seeds(20)
async def test_nothing_that_was_synced_is_lost_wherever_the_recovery_point_is(seed: int) -> None:
    """Appends, rolls, syncs, flushes and kills in any order; power is lost at any point between."""
    chance = random.Random(seed)
    config = LogConfig(segment_bytes=400, index_interval_bytes=50)
    filesystem, recovery_point, sequence = MemoryFileSystem(), 0, 0
    log = await open_log(filesystem, config=config)
    for _ in range(40):
        match chance.randrange(9):
            case 0:
                await log.flush()
                recovery_point = log.recovery_point
            case 1 | 2:
                await log.flusher.sync()
            case 3:
                filesystem = filesystem.copy()
                log = await open_log(filesystem, config=config, recovery_point=recovery_point)
            case 4 | 5:
                append_deltas(log)
            case 6:
                sequenced(log, sequence)
                sequence += 1
            case _:
                append(log, chance.randrange(1, 4))
        left = await open_log(filesystem.after_power_loss(), config=config, recovery_point=recovery_point)
        durable = [offset for offset in base_offsets_read(log) if offset < log.durable_offset]
        assert base_offsets_read(left)[: len(durable)] == durable
        assert left.log_end_offset >= log.durable_offset


async def test_index_entries_of_a_killed_process_are_durable_before_they_are_trusted(
    filesystem: MemoryFileSystem,
) -> None:
    log = await open_log(filesystem)
    append(log)
    append_deltas(log)
    await log.flush()
    shares = next(path for path in filesystem.files if path.endswith(".shareindex"))
    filesystem.synced[shares] = b""  # The process was killed between writing it and syncing it.
    killed = filesystem.copy()
    await (await open_log(killed)).flush()
    left = killed.after_power_loss()
    assert left.files[shares] == filesystem.files[shares]
