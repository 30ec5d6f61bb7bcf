"""The condition that a disk is full: logged once when it begins, and once when it has ended."""

import asyncio
import errno

import pytest
from structlog.typing import EventDict

from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import DiskFull, LogOffline, StorageError
from barnabas.storage.files.full_disk import PROBE_FILE, QUIET_SECONDS, FullDisk
from barnabas.storage.log_config import LogConfig
from tests.simulation.virtual_loop import in_virtual_time
from tests.storage.log_building import NOW_MS, TOPIC_ID, append, append_checkpoint, small_storage
from tests.storage.memory_filesystem import MemoryFileSystem

NO_ROOM = OSError(errno.ENOSPC, "no room")
BEGIN = {
    "event": "the disk is full: records, acknowledgements and commits are refused",
    "log_level": "error",
    "subject": "log_directory",
    "directory": "/data",
    "reason": "no room",
    "remedy": "free space on that file system, or enlarge it",
}
END = {
    "event": "the disk has room again",
    "log_level": "warning",
    "subject": "log_directory",
    "directory": "/data",
}


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + self.seconds)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    return filesystem


@pytest.fixture
def full_disk(filesystem: MemoryFileSystem) -> FullDisk:
    return FullDisk(filesystem, "/data")


def caused_by(error: OSError) -> StorageError:
    outer = LogOffline("orders-0")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
async def test_the_first_error_for_lack_of_room_is_logged(
    full_disk: FullDisk, log_lines: list[EventDict], code: int
) -> None:
    assert full_disk.met(caused_by(OSError(code, "no room")))
    assert full_disk.met(OSError(code, "no room"))
    assert isinstance(full_disk.refusal(), DiskFull)
    assert log_lines == [BEGIN]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), caused_by(OSError(errno.EFBIG, "x"))])
async def test_other_errors_do_not_begin_it(full_disk: FullDisk, error: Exception) -> None:
    assert not full_disk.met(error)
    assert (full_disk.is_full, full_disk.refusal()) == (False, None)


async def test_an_old_error_does_not_begin_it_again(full_disk: FullDisk) -> None:
    assert full_disk.explains(caused_by(NO_ROOM))
    assert not full_disk.is_full


async def test_the_condition_ends_after_some_time_with_room(
    full_disk: FullDisk, filesystem: MemoryFileSystem, clock: Clock, log_lines: list[EventDict]
) -> None:
    full_disk.met(NO_ROOM)
    await full_disk.look_again()
    assert full_disk.is_full, "a write was refused a moment ago"
    clock.seconds += QUIET_SECONDS
    await full_disk.look_again()
    assert (full_disk.is_full, filesystem.files) == (False, {})
    assert log_lines == [BEGIN, END]


async def test_the_condition_continues_while_nothing_can_be_written(
    full_disk: FullDisk, filesystem: MemoryFileSystem, clock: Clock, log_lines: list[EventDict]
) -> None:
    full_disk.met(NO_ROOM)
    filesystem.write_error = errno.ENOSPC
    for _ in range(3):
        clock.seconds += QUIET_SECONDS
        await full_disk.look_again()
    assert (full_disk.is_full, filesystem.files) == (True, {})
    assert log_lines == [BEGIN]


@in_virtual_time
async def test_nothing_else_is_logged_while_the_disk_is_full(log_lines: list[EventDict]) -> None:
    filesystem = MemoryFileSystem()
    storage = small_storage(flush_interval_ms=10, recovery_point_interval_ms=10, reopen_backoff_ms=0)
    directory = await LogDirectory.open(
        filesystem, "/data", node_id=1, wall_ms=lambda: NOW_MS, storage=storage
    )
    filesystem.files[f"/data/{PROBE_FILE}"] = bytearray(b"left by a crash")
    directory.start()
    log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
    append_checkpoint(log)
    filesystem.write_error = errno.ENOSPC
    for _ in range(20):
        await asyncio.sleep(0.01)
        log = await directory.log("orders", 0, TOPIC_ID, LogConfig())
        append(log)
    assert directory.full_disk.is_full
    filesystem.write_error = None
    await directory.close()
    assert log_lines == [{**BEGIN, "reason": "the disk says no"}]


async def test_a_probe_file_that_a_crash_left_is_removed(filesystem: MemoryFileSystem) -> None:
    filesystem.files[f"/data/{PROBE_FILE}"] = bytearray(b"x")
    directory = await LogDirectory.open(filesystem, "/data", node_id=1, wall_ms=lambda: NOW_MS)
    assert f"/data/{PROBE_FILE}" not in filesystem.files
    await directory.close()
