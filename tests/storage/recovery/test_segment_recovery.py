"""Rebuilt indexes, and failures during the rebuild."""

import errno

import pytest

from barnabas.storage.errors import StorageError
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import DIRECTORY, append, append_deltas, base_offsets_read, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

DENSE = LogConfig(index_interval_bytes=150)
SUFFIXES = (".index", ".timeindex", ".shareindex")


def index_path(suffix: str) -> str:
    return f"{DIRECTORY}/{0:020d}{suffix}"


@pytest.mark.parametrize("damaged", SUFFIXES)
@pytest.mark.parametrize("failing", SUFFIXES)
async def test_a_second_attempt_rebuilds_the_indexes_that_the_first_could_not_write(
    damaged: str, failing: str
) -> None:
    """The disk is full when a damaged index is rebuilt: the other two must not be trusted then."""
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=DENSE)
    for _ in range(20):
        append(log, 2)
        append_deltas(log)
    await log.close()
    seen, runs = base_offsets_read(await open_log(filesystem.copy(), config=DENSE)), list(range(2, 60, 3))
    filesystem.files[index_path(damaged)][0] ^= 1
    filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, failing
    with pytest.raises((OSError, StorageError)):
        await open_log(filesystem, config=DENSE, recovery_point=log.recovery_point)
    filesystem.write_error = None
    again = await open_log(filesystem, config=DENSE, recovery_point=log.recovery_point)
    assert base_offsets_read(again) == seen == [offset for offset in range(60) if offset % 3 == 0]
    assert [offset for offset in range(60) if again.control_runs.data_count(offset, offset) == 0] == runs
    assert again.high_watermark == log.high_watermark
