"""The number of offline logs: it follows each log that goes offline, is opened again, or is deleted."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import LogOffline
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.state.offline_logs import OfflineLogs
from barnabas.storage.topic_partition import TopicPartition
from tests.storage.log_building import NOW_MS, TOPIC_ID, append, small_storage
from tests.storage.memory_filesystem import MemoryFileSystem

KEY = TopicPartition("orders", 0)


class Disk(MemoryFileSystem):
    """`directory_error` is the errno of creating a directory."""

    directory_error: int | None = None

    def make_directory(self, path: str) -> None:
        if self.directory_error is not None:
            raise OSError(self.directory_error, "the disk says no", path)
        super().make_directory(path)


@asynccontextmanager
async def opened(disk: Disk) -> AsyncGenerator[LogDirectory]:
    """A data directory in which an offline log may be opened again at once."""
    storage = small_storage(reopen_backoff_ms=0)
    directory = await LogDirectory.open(disk, "/data", node_id=1, wall_ms=lambda: NOW_MS, storage=storage)
    yield directory
    await directory.close()


async def log_of(directory: LogDirectory, partition: int = 0) -> PartitionLog:
    return await directory.log("orders", partition, TOPIC_ID, LogConfig())


async def break_log(disk: Disk, log: PartitionLog) -> None:
    """Its next write fails."""
    disk.write_error, disk.failing_suffix = errno.EIO, f"{log.directory}/{0:020d}.log"
    assert append(log).error is not None
    disk.write_error = None


async def test_a_log_that_goes_offline_counts_once_until_it_is_open_again() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        log, neighbour = await log_of(directory), await log_of(directory, 1)
        assert list(directory.offline_logs) == []
        await break_log(disk, log)
        assert append(log).error is not None
        assert list(directory.offline_logs) == [KEY]
        await break_log(disk, neighbour)
        assert sorted(directory.offline_logs) == [KEY, TopicPartition("orders", 1)]
        await log_of(directory)
        assert list(directory.offline_logs) == [TopicPartition("orders", 1)]


async def test_a_log_whose_flush_fails_counts() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        append(await log_of(directory))
        disk.sync_error, disk.failing_suffix = errno.EIO, ".log"
        await directory.flush()
        disk.sync_error = None
        assert list(directory.offline_logs) == [KEY]


async def test_a_log_counts_while_it_is_being_opened_again() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        await break_log(disk, await log_of(directory))
        disk.hold()
        opening = asyncio.create_task(log_of(directory))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not opening.done()
        assert list(directory.offline_logs) == [KEY]
        disk.release()
        await opening
        assert list(directory.offline_logs) == []


async def test_a_log_that_cannot_be_opened_counts_until_an_opening_succeeds() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        disk.create_error = errno.EIO
        for _ in range(2):
            with pytest.raises(LogOffline):
                await log_of(directory)
            assert list(directory.offline_logs) == [KEY]
        disk.create_error = None
        await log_of(directory)
        assert list(directory.offline_logs) == []


async def test_a_deleted_topic_does_not_count() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        await break_log(disk, await log_of(directory))
        await directory.delete_topic("orders")
        assert list(directory.offline_logs) == []


async def test_a_deleted_topic_does_not_count_although_its_directory_could_not_be_created() -> None:
    disk = Disk()
    async with opened(disk) as directory:
        disk.directory_error = errno.ENOSPC
        with pytest.raises(LogOffline):
            await log_of(directory)
        disk.directory_error = None
        assert list(directory.offline_logs) == [KEY]
        await directory.delete_topic("other")
        assert list(directory.offline_logs) == [KEY]
        await directory.delete_topic("orders")
        assert list(directory.offline_logs) == []


async def test_a_log_that_was_closed_does_not_count() -> None:
    async with opened(Disk()) as directory:
        await log_of(directory)
    assert list(directory.offline_logs) == []


async def test_the_first_request_after_a_failure_begins_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: seconds)
    logs, error = OfflineLogs(), LogOffline("orders-0: the disk says no")
    logs.add(KEY)
    seconds = 10.0
    with pytest.raises(LogOffline, match="the disk says no"):
        logs.check_pause(KEY, error, 1_000)
    seconds = 10.9
    with pytest.raises(LogOffline, match="the disk says no"):
        logs.check_pause(KEY, error, 1_000)
    seconds = 11.0
    logs.check_pause(KEY, error, 1_000)
    assert list(logs) == [KEY]
    logs.remove(KEY)
    logs.check_pause(KEY, None, 1_000)
    assert len(logs) == 0
