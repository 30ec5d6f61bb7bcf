"""The maintenance task of the data directory under failures, and the cleanup at a start."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.format.checkpoint_file import decode_offsets
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, StorageConfig
from tests.storage.cleaner.dirty_logs import COMPACTED, append_batch, keyed, records_read, roll
from tests.storage.log_building import NOW_MS, append
from tests.storage.memory_filesystem import MemoryFileSystem

OLD_ID, NEW_ID = UUID(int=1), UUID(int=2)
RECOVERY_POINTS = "/data/recovery-point-offset-checkpoint"


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    return MemoryFileSystem()


async def opened(filesystem: MemoryFileSystem, **storage: Any) -> LogDirectory:
    return await LogDirectory.open(
        filesystem, "/data", node_id=1, wall_ms=lambda: NOW_MS, storage=StorageConfig(**storage)
    )


def raise_bug(*_: object) -> None:
    raise ZeroDivisionError


def bugs_in(log_lines: list[EventDict]) -> int:
    return sum(isinstance(line.get("exc_info"), ZeroDivisionError) for line in log_lines)


async def test_a_listeners_bug_does_not_keep_expired_segments(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    directory = await opened(filesystem)
    log = await directory.log("orders", 0, OLD_ID, LogConfig(segment_bytes=200, retention_bytes=400))
    for _ in range(10):
        append(log)
    log.when_moved(partial(raise_bug, log))
    log.pin_listeners.append(raise_bug)
    await directory.retain()
    assert log.log_start_offset > 0
    assert f"/data/orders-0/{0:020d}.log" not in filesystem.files
    assert bugs_in(log_lines) > 0
    await directory.close()


async def test_a_bug_does_not_end_the_maintenance(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, log_lines: list[EventDict]
) -> None:
    directory = await opened(
        filesystem, flush_interval_ms=1, recovery_point_interval_ms=1, retention_check_interval_ms=1
    )
    monkeypatch.setattr(directory, "retain", raise_in_coroutine)
    log = await directory.log("orders", 0, OLD_ID, LogConfig())
    directory.start()
    for end_offset in (1, 2):
        append(log)
        await filesystem.replacement_of(RECOVERY_POINTS).wait()
        assert log.recovery_point == end_offset
    await directory.close()
    assert bugs_in(log_lines) > 0


async def raise_in_coroutine(*_: object, **__: object) -> None:
    raise ZeroDivisionError


@pytest.mark.interpreted
async def test_a_directory_is_unlocked_even_if_steps_of_its_close_fail(
    filesystem: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, log_lines: list[EventDict]
) -> None:
    directory = await opened(filesystem)
    first = await directory.log("first", 0, OLD_ID, LogConfig())
    second = await directory.log("second", 0, OLD_ID, LogConfig())
    append(second)
    directory.start()
    monkeypatch.setattr(first, "close", raise_in_coroutine)
    monkeypatch.setattr(directory.cleaner, "close", raise_in_coroutine)
    await directory.close()
    assert (filesystem.locks, second.recovery_point) == (set(), 1)
    assert "/data/.kafka_cleanshutdown" not in filesystem.files
    assert bugs_in(log_lines) >= 2
    monkeypatch.undo()
    await directory.cleaner.close()
    await first.close()


class TestATopicOfTheSameName:
    """The old topic's directory was removed, and the process ended before it wrote the checkpoint files
    again.
    """

    async def test_begins_where_logs_begin(self, filesystem: MemoryFileSystem) -> None:
        directory = await opened(filesystem)
        log = await directory.log("orders", 0, OLD_ID, LogConfig())
        append(log, 1000)
        log.delete_records(500)
        await directory.flush(high_watermarks=True)
        _, log = await created_anew(directory, filesystem, LogConfig())
        assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 0, 0)

    async def test_is_compacted_from_its_start_on(self, filesystem: MemoryFileSystem) -> None:
        directory = await opened(filesystem)
        log = await directory.log("orders", 0, OLD_ID, COMPACTED)
        append_batches(log, b"k", 60)
        await roll(log)
        await directory.cleaner.clean_due()
        await directory.flush()
        again, log = await created_anew(directory, filesystem, COMPACTED)
        append_batches(log, b"a", 60)
        append_batches(log, b"b", 60)
        await roll(log)
        await again.cleaner.clean_due()
        assert [record.key for record in records_read(log)] == [b"a", b"b"]

    async def test_is_in_no_checkpoint_file(self, filesystem: MemoryFileSystem) -> None:
        directory = await opened(filesystem)
        kept = await directory.log("kept", 0, OLD_ID, COMPACTED)
        log = await directory.log("orders", 0, OLD_ID, COMPACTED)
        for one in (kept, log):
            append_batches(one, b"k", 60)
            one.delete_records(1)
            await roll(one)
        await directory.cleaner.clean_due()
        await directory.close()
        filesystem.remove_tree("/data/orders-0")
        directory = await opened(filesystem)
        await directory.flush(high_watermarks=True)
        written = {
            path: decode_offsets(bytes(content))
            for path, content in filesystem.files.items()
            if "-offset-checkpoint" in path
        }
        assert len(written) == 5, "with the copy of the log starts"
        assert all(list(offsets) == [("kept", 0)] for offsets in written.values())
        await directory.close()


def append_batches(log: PartitionLog, key: bytes, count: int) -> None:
    for number in range(count):
        append_batch(log, keyed(key, b"%d" % number))


async def created_anew(
    directory: LogDirectory, filesystem: MemoryFileSystem, config: LogConfig
) -> tuple[LogDirectory, PartitionLog]:
    """The log of a new topic in the directory of a process that ended right after the deletion."""
    await directory.delete_topic("orders")
    again = await opened(filesystem.copy())
    return again, await again.log("orders", 0, NEW_ID, config)
