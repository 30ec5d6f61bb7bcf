"""Files of segments that retention removes: renamed at once, removed later (file.delete.delay.ms)."""

import asyncio
import errno

import pytest
from structlog.typing import EventDict

from barnabas.storage.files.delayed_removal import DelayedRemoval
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.simulation.virtual_loop import in_virtual_time
from tests.storage.log_building import NOW_MS, append, base_offsets_read, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

HOUR_MS = 3600 * 1000
DELAY_MS = 60_000


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def filled(filesystem: MemoryFileSystem, delay_ms: int) -> PartitionLog:
    """Five segments of two batches each, an hour apart."""
    config = LogConfig(segment_bytes=200, retention_ms=5 * HOUR_MS, file_delete_delay_ms=delay_ms)
    log = await open_log(filesystem, config=config)
    for number in range(10):
        append(log, timestamp_ms=NOW_MS + number * HOUR_MS)
    return log


def deleted(filesystem: MemoryFileSystem) -> int:
    """The number of segments that wait for their removal."""
    return sum(name.endswith(".log.deleted") for name in filesystem.files)


@in_virtual_time
async def test_a_segment_leaves_the_log_and_its_files_are_removed_later(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, DELAY_MS)
    assert await log.enforce_retention(NOW_MS + 8 * HOUR_MS) == 1
    assert (deleted(filesystem), base_offsets_read(log, 2)[0]) == (1, 2)
    await asyncio.sleep(DELAY_MS / 1000 - 1)
    assert deleted(filesystem) == 1
    await asyncio.sleep(2)
    assert not [name for name in filesystem.files if "00000000000000000000." in name]
    await log.close()


async def test_without_a_delay_they_are_removed_at_once(filesystem: MemoryFileSystem) -> None:
    log = await filled(filesystem, 0)
    await log.enforce_retention(NOW_MS + 8 * HOUR_MS)
    assert not [name for name in filesystem.files if "00000000000000000000." in name]
    await log.close()


async def test_files_that_wait_when_the_log_is_closed_are_removed_at_the_next_start(
    filesystem: MemoryFileSystem,
) -> None:
    log = await filled(filesystem, HOUR_MS)
    await log.enforce_retention(NOW_MS + 8 * HOUR_MS)
    await log.close()
    assert deleted(filesystem) == 1
    again = await open_log(filesystem, config=log.config)
    assert (deleted(filesystem), again.log_start_offset) == (0, 2)
    await again.close()


@in_virtual_time
async def test_files_that_cannot_be_removed_are_logged(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    class Stubborn(MemoryFileSystem):
        def remove(self, path: str) -> None:
            raise OSError(errno.EIO, "no")

    stubborn = Stubborn()
    stubborn.files["/data/x.deleted"] = filesystem.files.get("none", bytearray())
    removal = DelayedRemoval(stubborn)
    removal.remove_later(["/data/gone.deleted", "/data/x.deleted"], DELAY_MS)
    await asyncio.sleep(DELAY_MS / 1000 + 1)
    await removal.close()
    assert [line["event"] for line in log_lines] == ["deleted files were not removed"]
