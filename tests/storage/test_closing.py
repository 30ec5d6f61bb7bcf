"""Closing logs and segments while threads work on their files: nothing is written through a closed handle.

`MemoryFile` refuses any use of a handle that was closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import pytest

from barnabas.storage.errors import LogClosed, StorageError
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.log.appended import Append
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig
from barnabas.storage.segments.segment import Segment
from tests.storage.log_building import NOW_MS, append, open_log, small_storage
from tests.storage.memory_filesystem import MemoryFileSystem

P = ParamSpec("P")
T = TypeVar("T")

LARGE = bytes(StorageConfig().append_inline_bytes_max)
"""Too large for a write on the loop's thread."""


class GatedFileSystem(MemoryFileSystem):
    """A call of `run` waits at the gate with its function's name, if there is one; `reached` is set then."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, asyncio.Event] = {}
        self.reached = asyncio.Event()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        gate = self.gates.get(getattr(function, "__name__", ""))
        if gate is not None:
            self.reached.set()
            await gate.wait()
        return await super().run(function, *args, **kwargs)

    def stop_at(self, name: str) -> asyncio.Event:
        """A gate that the test opens."""
        gate = self.gates[name] = asyncio.Event()
        return gate


async def settled(appended: Append) -> Exception | None:
    with suppress(StorageError):
        await appended
    return appended.error


@pytest.mark.parametrize("clean", [True, False])
async def test_a_log_that_is_closed_during_a_flush_accepts_no_appends(clean: bool) -> None:
    filesystem = GatedFileSystem()
    log = await open_log(filesystem)
    append(log)
    syncing = filesystem.stop_at("_sync_records")
    flushing = asyncio.create_task(log.flush())
    await filesystem.reached.wait()
    closing = asyncio.create_task(log.close(clean=clean))
    await asyncio.sleep(0)
    late = append(log, value=LARGE)
    assert isinstance(late.error, LogClosed)
    syncing.set()
    await asyncio.gather(flushing, closing)
    assert (filesystem.open_count, log.recovery_point) == (0, 1)


@pytest.mark.parametrize("clean", [True, False])
async def test_a_log_that_is_closed_waits_for_the_thread_that_writes(clean: bool) -> None:
    filesystem = GatedFileSystem()
    log = await open_log(filesystem)
    writing = filesystem.stop_at("_write")
    appended = append(log, value=LARGE)
    await filesystem.reached.wait()
    closing = asyncio.create_task(log.close(clean=clean))
    for _ in range(5):
        await asyncio.sleep(0)
    assert filesystem.open_count == 1
    writing.set()
    await closing
    assert (await settled(appended), filesystem.open_count) == (None, 0)


async def test_an_append_after_a_failed_one_of_a_closed_log_is_refused() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, storage=small_storage(flush=FlushPolicy.ALWAYS))
    again: list[Append] = []
    filesystem.hold()
    first, second = append(log), append(log)
    second.when_done(lambda _: again.append(append(log)))
    closing = asyncio.create_task(log.close(clean=False))
    await asyncio.sleep(0)
    filesystem.release()
    await closing
    assert first.error is None
    assert [type(appended.error) for appended in (second, *again)] == [LogClosed, LogClosed]
    assert (await open_log(filesystem.copy())).log_end_offset == 1


async def test_retention_leaves_a_file_open_until_its_sync_in_a_thread_ends() -> None:
    filesystem = GatedFileSystem()
    config = LogConfig(segment_bytes=200, flush_messages=4, retention_bytes=200)
    log = await open_log(filesystem, config=config)
    for _ in range(3):
        append(log, value=b"x" * 100)
    syncing = filesystem.stop_at("_write_and_sync")
    appended = append(log, value=b"x" * 100)
    await filesystem.reached.wait()
    assert await log.enforce_retention(NOW_MS) == 1
    open_count = filesystem.open_count
    syncing.set()
    assert await settled(appended) is None
    assert (log.offline, filesystem.open_count) == (None, open_count - 1)
    assert (log.log_start_offset, log.log_end_offset) == (1, 4)


async def test_a_pinned_segment_is_closed_by_its_last_unpin() -> None:
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    open_files = OpenFiles(8)
    segment = Segment(
        filesystem,
        "/data",
        0,
        index_interval_bytes=4096,
        open_files=open_files,
        damaged_indexes=set(),
        created_ms=NOW_MS,
    )
    segment.create_files()
    segment.pin()
    segment.pin()
    assert segment.file.size() == 0
    segment.close()
    segment.unpin()
    assert (filesystem.open_count, len(open_files)) == (1, 1)
    segment.unpin()
    assert (filesystem.open_count, len(open_files)) == (0, 0)
