"""The start offset of a group that has never read the partition, with a reset by duration."""

import asyncio

import pytest

from barnabas.runtime.stepwise import StepwiseWork
from barnabas.share.leader.start_offset import StartSearch
from barnabas.storage.errors import LogClosed
from barnabas.storage.log.partition_log import PartitionLog
from tests.storage.log_building import append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

NOW_MS = 1_000_000


async def ended_search(log: PartitionLog, duration_ms: int) -> StartSearch:
    done = asyncio.Event()
    search = StartSearch(log, duration_ms, NOW_MS, StepwiseWork(MemoryFileSystem()), done.set)
    assert not search.is_done
    await done.wait()
    return search


@pytest.mark.parametrize(("duration_ms", "offset"), [(400, 2), (300, 2), (299, 3), (50, None)])
async def test_the_start_is_at_the_first_record_that_is_young_enough(
    duration_ms: int, offset: int | None
) -> None:
    log = await open_log(MemoryFileSystem())
    for age_ms in (1000, 500, 300, 100):
        append(log, timestamp_ms=NOW_MS - age_ms)
    append_deltas(log, 3)
    log.delete_records(1)
    assert (await ended_search(log, duration_ms)).start_offset() == offset


async def test_the_start_is_never_below_the_records_deleted_since() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, timestamp_ms=NOW_MS)
    append(log, timestamp_ms=NOW_MS)
    search = await ended_search(log, 10)
    log.delete_records(1)
    assert search.start_offset() == 1


async def test_an_empty_log_has_no_start_until_records_arrive() -> None:
    log = await open_log(MemoryFileSystem())
    search = await ended_search(log, 10**9)
    assert (search.start_offset(), search.is_outdated) == (None, False)
    append_deltas(log)
    assert not search.is_outdated
    append(log, timestamp_ms=NOW_MS)
    assert search.is_outdated


async def test_an_error_of_the_search_is_raised_each_time() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, timestamp_ms=NOW_MS)
    await log.close()
    search = await ended_search(log, 10)
    for _ in range(2):
        with pytest.raises(LogClosed):
            search.start_offset()
