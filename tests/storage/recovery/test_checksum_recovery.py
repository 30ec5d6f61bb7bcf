"""The file with the checksums of a log's indexes: after a loss of power, and after a kill."""

from __future__ import annotations

from structlog.typing import EventDict

from barnabas.storage.format.index_checksums import FILE_NAME, decode_index_checksums
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import DIRECTORY, NOW_MS, append, offset_for_timestamp, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

PATH = f"{DIRECTORY}/{FILE_NAME}"
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
COUNT = 30


def append_some(log: PartitionLog, first_offset: int) -> None:
    for offset in range(first_offset, first_offset + COUNT):
        append(log, timestamp_ms=NOW_MS + offset)


async def reopened(filesystem: MemoryFileSystem, end_offset: int) -> PartitionLog:
    return await open_log(filesystem, config=CONFIG, recovery_point=end_offset)


def checked_segments(filesystem: MemoryFileSystem) -> list[int]:
    return list(decode_index_checksums(bytes(filesystem.files[PATH])))


async def test_indexes_that_an_older_file_does_not_know_are_rebuilt() -> None:
    """A loss of power may bring the file of an earlier flush back."""
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=CONFIG)
    append_some(log, 0)
    await log.flush()
    older = bytes(filesystem.files[PATH])
    append_some(log, COUNT)
    await log.close()
    every, known = checked_segments(filesystem), list(decode_index_checksums(older))
    assert len(every) > len(known) + 1

    filesystem.files[PATH][:] = older
    for base_offset in every[len(known) - 1 : -1]:
        filesystem.files[f"{DIRECTORY}/{base_offset:020d}.timeindex"][7] ^= 1
    log = await reopened(filesystem, 2 * COUNT)
    for offset in range(2 * COUNT):
        assert await offset_for_timestamp(log, NOW_MS + offset) == (NOW_MS + offset, offset)
    assert checked_segments(filesystem) == every


async def test_no_intact_index_counts_as_damaged_after_a_kill(log_lines: list[EventDict]) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=CONFIG)
    for _ in range(2):
        append(log)
        await log.close()  # adds an entry to the time index, which recovery does not make again
        log = await reopened(filesystem, log.log_end_offset)
    await reopened(filesystem.copy(), log.log_end_offset)
    assert log_lines == []
    await log.close()


async def test_a_new_log_without_indexes_needs_no_checksums() -> None:
    filesystem = MemoryFileSystem()
    await (await open_log(filesystem, config=CONFIG)).close()
    assert PATH not in filesystem.files
