"""The cleaner for all logs of a data directory: order, failures and checkpoints."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.cleaner import RETRY_BACKOFF_MS_MIN
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import StorageError
from barnabas.storage.format.checkpoint_file import decode_offsets
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, StorageConfig
from tests.storage.cleaner.dirty_logs import (
    append_batch,
    keyed,
    latest_by_key,
    records_read,
    roll,
)
from tests.storage.log_building import NOW_MS, append_checkpoint, append_deltas
from tests.storage.memory_filesystem import MemoryFile, MemoryFileSystem

COMPACTED = LogConfig(compact_enabled=True, delete_enabled=False)
CHECKPOINT_PATH = "/data/cleaner-offset-checkpoint"


class Clock:
    """Stands still until it is moved; the wall clock may be set."""

    def __init__(self) -> None:
        self.now_ms = self.wall_shift_ms = 0


@asynccontextmanager
async def opened(
    filesystem: MemoryFileSystem, clock: Clock | None = None, **storage: Any
) -> AsyncGenerator[LogDirectory]:
    clock = clock or Clock()
    directory = await LogDirectory.open(
        filesystem,
        "/data",
        node_id=1,
        wall_ms=lambda: NOW_MS + clock.now_ms + clock.wall_shift_ms,
        now_ms=lambda: clock.now_ms,
        storage=StorageConfig(**storage),
    )
    yield directory
    await directory.close()


async def dirty_log(directory: LogDirectory, topic: str, *, segments: int = 1) -> PartitionLog:
    """A compacted log of one key, one segment for ten records."""
    log = await directory.log(topic, 0, UUID(int=len(topic)), COMPACTED)
    for _ in range(segments):
        for number in range(10):
            append_batch(log, keyed(b"key", b"%d" % number))
        await roll(log)
    return log


async def queue_log(directory: LogDirectory, topic: str) -> PartitionLog:
    """A log of share state alone; everything except the newest checkpoint may be removed."""
    log = await directory.log(topic, 0, UUID(int=len(topic)), LogConfig())
    append_deltas(log, 1_000)
    await roll(log)
    append_checkpoint(log)
    return log


async def test_all_logs_worth_cleaning_are_cleaned_and_checkpointed() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem) as directory:
        log = await dirty_log(directory, "compacted")
        queue = await queue_log(directory, "queue")
        size_bytes = log.size_bytes + queue.size_bytes
        await directory.cleaner.clean_due()
        assert len(records_read(log)) == 1
        assert directory.cleaner.run_count == 2
        assert directory.cleaner.cleaned_bytes == size_bytes - log.size_bytes - queue.size_bytes
        assert decode_offsets(bytes(filesystem.files[CHECKPOINT_PATH])) == {("compacted", 0): 10}


async def test_the_compacted_offset_is_known_after_a_restart() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem) as directory:
        await dirty_log(directory, "compacted")
        await directory.cleaner.clean_due()
    async with opened(filesystem) as directory:
        await directory.log("compacted", 0, UUID(int=9), COMPACTED)
        await directory.cleaner.clean_due()
        assert directory.cleaner.run_count == 0


async def test_a_deleted_topic_is_forgotten() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem) as directory:
        await dirty_log(directory, "compacted")
        await directory.cleaner.clean_due()
        await directory.delete_topic("compacted")
    assert decode_offsets(bytes(filesystem.files[CHECKPOINT_PATH])) == {}


async def test_the_dirtiest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = MemoryFileSystem()
    order: list[str] = []
    async with opened(filesystem) as directory:
        half = await dirty_log(directory, "half")
        await directory.cleaner.clean_due()
        for number in range(30):
            append_batch(half, keyed(b"key", b"%d" % number))
        await roll(half)
        await dirty_log(directory, "whole")
        await queue_log(directory, "queues")
        clean = PartitionLog.clean

        async def noted(log: PartitionLog, *args: Any) -> Any:
            order.append(log.topic_partition.topic)
            return await clean(log, *args)

        monkeypatch.setattr(PartitionLog, "clean", noted)
        await directory.cleaner.clean_due()
    assert order == ["whole", "half", "queues"]


@pytest.mark.parametrize("wall_shift_ms", [0, -3_600_000, 3_600_000])
async def test_a_log_on_a_full_disk_is_tried_again_later_and_delays_no_other(
    log_lines: list[EventDict], wall_shift_ms: int
) -> None:
    filesystem, clock = MemoryFileSystem(), Clock()
    async with opened(filesystem, clock) as directory:
        full = await dirty_log(directory, "full")
        fine = await queue_log(directory, "fine")
        filesystem.write_error, filesystem.failing_suffix = (
            errno.ENOSPC,
            "full-0/" + "0" * 20 + ".log.cleaned",
        )
        before = records_read(full)
        await directory.cleaner.clean_due()
        await directory.cleaner.clean_due()
        assert [(line["log_level"], line["log"]) for line in log_lines] == [("error", "full-0")]
        assert full.offline is None
        assert records_read(full) == before
        assert fine.size_bytes < 1_000

        filesystem.write_error = None
        clock.wall_shift_ms = wall_shift_ms
        clock.now_ms += RETRY_BACKOFF_MS_MIN - 1
        await directory.cleaner.clean_due()
        assert records_read(full) == before
        clock.now_ms += 1
        await directory.cleaner.clean_due()
        assert latest_by_key(records_read(full)) == latest_by_key(before)
        assert len(records_read(full)) == 1


async def test_a_disk_that_stays_full_is_tried_less_and_less_often(log_lines: list[EventDict]) -> None:
    filesystem, clock = MemoryFileSystem(), Clock()
    async with opened(filesystem, clock) as directory:
        await dirty_log(directory, "full")
        filesystem.write_error, filesystem.failing_suffix = errno.ENOSPC, ".cleaned"
        for tries, wait_ms in enumerate([0, 15_000, 30_000, 60_000]):
            clock.now_ms += wait_ms
            await directory.cleaner.clean_due()
            assert len(log_lines) == tries + 1
        filesystem.write_error = None


async def test_a_damaged_log_is_not_cleaned_again_and_counted(log_lines: list[EventDict]) -> None:
    filesystem, clock = MemoryFileSystem(), Clock()
    async with opened(filesystem, clock) as directory:
        await dirty_log(directory, "damaged")
        fine = await dirty_log(directory, "fine")
        filesystem.files[f"/data/damaged-0/{0:020d}.log"][70] ^= 1
        for _ in range(2):
            clock.now_ms += 3_600_000
            await directory.cleaner.clean_due()
        assert len(records_read(fine)) == 1
        assert directory.cleaner.uncleanable_count == 1
        assert [(line["event"], line["log"]) for line in log_lines] == [
            ("a damaged log is no longer cleaned", "damaged-0")
        ]
        await directory.delete_topic("damaged")
        assert directory.cleaner.uncleanable_count == 0


async def test_a_bug_keeps_no_other_log_from_being_cleaned(
    monkeypatch: pytest.MonkeyPatch, log_lines: list[EventDict]
) -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem) as directory:
        await dirty_log(directory, "odd")
        fine = await dirty_log(directory, "fine")
        clean = PartitionLog.clean

        async def flawed(log: PartitionLog, *args: Any) -> Any:
            assert log is fine, "a bug"
            return await clean(log, *args)

        monkeypatch.setattr(PartitionLog, "clean", flawed)
        await directory.cleaner.clean_due()
        assert len(records_read(fine)) == 1
        assert directory.cleaner.uncleanable_count == 1
        assert "a bug" in str(log_lines[0]["exc_info"])


async def test_an_error_after_the_swap_takes_the_log_offline_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, log_lines: list[EventDict]
) -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem, reopen_backoff_ms=0) as directory:
        log = await dirty_log(directory, "compacted")
        rename = filesystem.rename

        def fail(source: str, target: str) -> None:
            if source.endswith(".log.swap"):
                raise OSError(errno.EIO, "no", source)
            rename(source, target)

        monkeypatch.setattr(filesystem, "rename", fail)
        await directory.cleaner.clean_due()
        assert log.offline is not None
        assert len(log_lines) == 1
        monkeypatch.undo()
        again = await directory.log("compacted", 0, UUID(int=9), COMPACTED)
        assert len(records_read(again)) == 1


async def test_groups_that_keep_share_state_are_asked_once() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem) as directory:
        log = await directory.log("queue", 0, UUID(int=1), LogConfig())
        told: list[frozenset[str]] = []

        def renew(_: PartitionLog, groups: frozenset[str]) -> None:
            told.append(groups)
            for group_id in groups:
                append_checkpoint(log, group_id)

        log.pin_listeners.append(renew)
        append_checkpoint(log, "idle")
        append_checkpoint(log, "busy")
        append_deltas(log, 1_000, "busy")
        await roll(log)
        append_checkpoint(log, "busy")
        size_bytes = log.size_bytes
        await directory.cleaner.clean_due()
        assert told == [{"idle"}]
        await directory.cleaner.clean_due()
        assert told == [{"idle"}]
        assert log.size_bytes < size_bytes / 20


@pytest.mark.parametrize("is_bug", [True, False])
async def test_an_error_while_checkpoints_are_renewed_does_not_end_the_cleaner(
    is_bug: bool, log_lines: list[EventDict]
) -> None:
    filesystem, clock = MemoryFileSystem(), Clock()
    async with opened(filesystem, clock) as directory:
        log = await directory.log("queue", 0, UUID(int=1), LogConfig())
        fine = await dirty_log(directory, "fine")

        def renew(_: PartitionLog, groups: frozenset[str]) -> None:
            raise ZeroDivisionError if is_bug else StorageError("The disk cannot read.")

        log.pin_listeners.append(renew)
        append_checkpoint(log, "idle")
        append_checkpoint(log, "busy")
        append_deltas(log, 1_000, "busy")
        await roll(log)
        await directory.cleaner.clean_due()
        assert len(records_read(fine)) == 1
        assert directory.cleaner.uncleanable_count == is_bug
        (line,) = [line for line in log_lines if line["event"].startswith("cleaning a log failed")]
        assert line["log"] == "queue-0"


async def test_a_bug_does_not_end_the_cleaner(
    monkeypatch: pytest.MonkeyPatch, log_lines: list[EventDict]
) -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem, cleaner_backoff_ms=1) as directory:
        log = await dirty_log(directory, "compacted")

        async def flawed() -> None:
            monkeypatch.undo()
            raise ZeroDivisionError

        monkeypatch.setattr(directory.cleaner, "clean_due", flawed)
        directory.start()
        await filesystem.replacement_of(CHECKPOINT_PATH).wait()
        assert len(records_read(log)) == 1
        assert [type(line["exc_info"]) for line in log_lines] == [ZeroDivisionError]


async def test_nothing_is_cleaned_where_the_cleaner_is_off() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem, cleaner_enabled=False, cleaner_backoff_ms=0) as directory:
        log = await dirty_log(directory, "compacted")
        directory.start()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(records_read(log)) == 10


async def test_the_cleaner_works_by_itself() -> None:
    filesystem = MemoryFileSystem()
    async with opened(filesystem, cleaner_backoff_ms=1) as directory:
        log = await dirty_log(directory, "compacted")
        directory.start()
        await filesystem.replacement_of(CHECKPOINT_PATH).wait()
        assert len(records_read(log)) == 1


async def test_a_closing_directory_does_not_wait_for_the_end_of_a_cleaning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filesystem, reading = MemoryFileSystem(), asyncio.Event()
    open_file = filesystem.open

    def noted(path: str, *, create: bool) -> MemoryFile:
        if path.endswith(".log"):
            reading.set()
        return open_file(path, create=create)

    async with opened(
        filesystem, cleaner_backoff_ms=0, cleaner_slice_bytes=1, cleaner_io_bytes_per_second=1.0
    ) as directory:
        log = await dirty_log(directory, "compacted", segments=5)
        monkeypatch.setattr(filesystem, "open", noted)
        directory.start()
        await reading.wait()
        assert len(records_read(log)) == 50, "at a byte a second it is far from done"
    assert not [path for path in filesystem.files if path.endswith((".cleaned", ".swap"))]
