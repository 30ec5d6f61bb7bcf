"""Failed openings leave no file open after any number of attempts."""

import errno

import pytest

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import LogOffline
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_control,
    newer_checkpoint_batch,
    open_log,
    small_storage,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer

SMALL = LogConfig(segment_bytes=300)


async def killed_with_many_segments(*, newer_state: bool = False) -> MemoryFileSystem:
    """The log of a killed process: more segments than recovery keeps open, with an aborted transaction and a
    snapshot of its producer; or with unreadable share state at the end.
    """
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=SMALL)
    producer = Producer(log, 1)
    producer.send()
    await log.flush()
    producer.abort()
    for _ in range(12):
        append(log, value=b"v" * 150)
    if newer_state:
        append_control(log, newer_checkpoint_batch)
    assert log.segment_count > 12
    return filesystem.copy()


async def test_unreadable_share_state_leaves_no_file_open() -> None:
    filesystem = await killed_with_many_segments(newer_state=True)
    with pytest.raises(RecordFormatError):
        await open_log(filesystem, config=SMALL)
    assert filesystem.open_count == 0


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot"])
async def test_a_file_that_cannot_be_read_leaves_no_file_open(suffix: str) -> None:
    filesystem = await killed_with_many_segments()
    filesystem.read_error, filesystem.failing_suffix = errno.EIO, suffix
    with pytest.raises(OSError, match="cannot read"):
        await open_log(filesystem, config=SMALL)
    assert filesystem.open_count == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".shareindex", ".txnindex"])
async def test_an_index_without_room_to_be_made_again_leaves_no_file_open(suffix: str) -> None:
    filesystem = await killed_with_many_segments()
    for path in [path for path in filesystem.files if path.endswith(suffix)]:
        del filesystem.files[path]
    filesystem.create_error, filesystem.failing_suffix = errno.ENOSPC, suffix
    with pytest.raises(OSError, match="the disk says no"):
        await open_log(filesystem, config=SMALL)
    assert filesystem.open_count == 0


async def test_a_directory_that_tries_to_open_the_log_repeatedly_leaves_no_file_open() -> None:
    filesystem = await killed_with_many_segments(newer_state=True)
    directory = await LogDirectory.open(
        filesystem,
        "/data",
        node_id=1,
        wall_ms=lambda: NOW_MS,
        storage=small_storage(reopen_backoff_ms=0),
    )
    for _ in range(3):
        with pytest.raises(LogOffline):
            await directory.log("orders", 0, TOPIC_ID, SMALL)
        assert filesystem.open_count == 0
    await directory.close()
