"""Rolls that fail half way, in a log that outlives a full disk, such as the metadata log."""

import errno

import pytest

from barnabas.storage.errors import DiskFull, LogOffline
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import DIRECTORY, NOW_MS, append, open_log, outcomes, values_read
from tests.storage.memory_filesystem import MemoryFileSystem

OUTLIVING = LogConfig(segment_bytes=400, flush_messages=1, outlives_full_disk=True)
LARGE = b"x" * 300
SUFFIXES = (".log", ".index", ".timeindex", ".shareindex")


def names(filesystem: MemoryFileSystem) -> list[str]:
    return [path for path in filesystem.files if path.startswith(f"{DIRECTORY}/{1:020d}")]


async def refused_a_roll(filesystem: MemoryFileSystem, suffix: str) -> PartitionLog:
    """A log that found no room for a file of its second segment, with the base offset 1."""
    log = await open_log(filesystem, config=OUTLIVING)
    await append(log)
    await log.flush()
    filesystem.create_error, filesystem.failing_suffix = errno.ENOSPC, suffix
    assert outcomes([append(log, value=LARGE)]) == [DiskFull]
    filesystem.create_error = None
    return log


@pytest.mark.parametrize("rolls_again", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
async def test_records_confirmed_after_it_exist_after_a_restart(suffix: str, rolls_again: bool) -> None:
    filesystem = MemoryFileSystem()
    log = await refused_a_roll(filesystem, suffix)
    assert names(filesystem) == []
    for _ in range(2):
        await append(log)
    if rolls_again:
        await append(log, value=LARGE)
    expected, end_offset = values_read(log), log.log_end_offset
    assert log.segment_count == 1 + rolls_again
    await log.close()
    again = await open_log(filesystem, config=OUTLIVING, recovery_point=log.recovery_point)
    assert (values_read(again), again.log_end_offset) == (expected, end_offset)


async def test_a_loss_of_power_does_not_bring_back_a_removed_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem = MemoryFileSystem()
    log = await refused_a_roll(filesystem, ".timeindex")
    assert log.flusher.needs_sync, "not for the records, which are durable"
    synced: list[str] = []
    monkeypatch.setattr(filesystem, "sync_directory", synced.append)
    await log.flusher.sync()
    assert synced == [DIRECTORY]
    assert not log.flusher.needs_sync


async def test_a_log_that_cannot_remove_a_partly_created_segment_goes_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=OUTLIVING)
    await append(log)
    filesystem.create_error, filesystem.failing_suffix = errno.ENOSPC, ".timeindex"

    def refuse(path: str) -> None:
        raise OSError(errno.EIO, "the disk says no", path)

    with monkeypatch.context() as patch:
        patch.setattr(filesystem, "remove", refuse)
        assert outcomes([append(log, value=LARGE)]) == [LogOffline]
    with pytest.raises(LogOffline):
        log.roll_if_due(NOW_MS)
    filesystem.create_error = None
    again = await open_log(filesystem, config=OUTLIVING, recovery_point=log.recovery_point)
    assert again.log_end_offset == 1
    following = append(again)
    await following
    assert outcomes([following]) == [(1, 1)]
