"""Syncs of a directory that several callers share."""

import asyncio
import errno

import pytest

from barnabas.storage.flushing.shared_sync import SharedSync
from tests.storage.memory_filesystem import MemoryFileSystem

PATH = "/data"


class CountingFileSystem(MemoryFileSystem):
    """Counts the syncs of the directory, or fails them."""

    def __init__(self) -> None:
        super().__init__()
        self.synced_count = 0
        self.is_broken = False
        self.make_directory(PATH)

    def sync_directory(self, path: str) -> None:
        self.synced_count += 1
        if self.is_broken:
            raise OSError(errno.EIO, "the disk forgot", path)
        super().sync_directory(path)


@pytest.fixture
def filesystem() -> CountingFileSystem:
    return CountingFileSystem()


async def test_callers_at_the_same_time_share_a_sync(filesystem: CountingFileSystem) -> None:
    names = SharedSync(filesystem, PATH)
    await asyncio.gather(*(names.sync() for _ in range(100)))
    assert filesystem.synced_count == 1


async def test_callers_during_a_sync_share_the_next(filesystem: CountingFileSystem) -> None:
    names = SharedSync(filesystem, PATH)
    filesystem.hold()
    first = asyncio.ensure_future(names.sync())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(names.sync()) for _ in range(10)]
    await asyncio.sleep(0)
    filesystem.release()
    await asyncio.gather(first, *others)
    assert filesystem.synced_count == 2


async def test_a_failure_reaches_all_callers_that_waited_and_no_others(
    filesystem: CountingFileSystem,
) -> None:
    names = SharedSync(filesystem, PATH)
    filesystem.is_broken = True
    outcomes = await asyncio.gather(*(names.sync() for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OSError] * 3
    filesystem.is_broken = False
    await names.sync()


async def test_a_cancelled_caller_does_not_cancel_the_sync_of_others(filesystem: CountingFileSystem) -> None:
    names = SharedSync(filesystem, PATH)
    impatient, patient = (asyncio.ensure_future(names.sync()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert filesystem.synced_count == 1
