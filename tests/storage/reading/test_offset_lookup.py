"""Offsets by time, and the largest timestamp, while the log changes."""

# pyright: reportPrivateUsage=false

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest

from barnabas.protocol.batch_body import SMALL_RECORDS_MAX
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.errors import LogClosed
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from barnabas.storage.reading import offset_lookup
from barnabas.storage.reading.offset_lookup import TimedOffset
from tests.storage.cleaner.dirty_logs import SMALL, clean, roll
from tests.storage.log_building import (
    append,
    append_checkpoint,
    append_deltas,
    max_timestamp,
    offset_for_timestamp,
    open_log,
    validated,
)
from tests.storage.memory_filesystem import MemoryFileSystem


async def log_of(times: list[list[int]], config: LogConfig | None = None) -> PartitionLog:
    """Batches of records with these timestamps, and share state between them."""
    log = await open_log(MemoryFileSystem(), config=config)
    for batch_times in times:
        records = [
            Record(number, timestamp_ms, None, b"v") for number, timestamp_ms in enumerate(batch_times)
        ]
        batch = encode_records(records)
        log.append_produced(batch, validated(batch), 0)
        append_deltas(log)
    return log


TIMES = [[10, 20, 30], [25], [40, 35, 50], [45]]


@pytest.mark.parametrize(
    ("timestamp_ms", "found"),
    [
        (0, (10, 0)),
        (10, (10, 0)),
        (11, (20, 1)),
        (26, (30, 2)),
        (31, (40, 6)),
        (41, (50, 8)),
        (50, (50, 8)),
        (51, None),
    ],
)
@pytest.mark.parametrize("segment_bytes", [2**30, 100])
@pytest.mark.parametrize("index_interval_bytes", [0, 4096])
async def test_the_first_record_at_or_after_a_time_is_found(
    timestamp_ms: int, found: tuple[int, int] | None, segment_bytes: int, index_interval_bytes: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
    log = await log_of(TIMES, config)
    assert await offset_for_timestamp(log, timestamp_ms) == found


async def test_records_below_the_log_start_are_not_found() -> None:
    log = await log_of(TIMES)
    log.delete_records(2)
    assert await offset_for_timestamp(log, 0) == (30, 2)


@pytest.mark.parametrize("segment_bytes", [2**30, 100])
async def test_the_record_with_the_largest_time_is_found(segment_bytes: int) -> None:
    log = await log_of(TIMES, LogConfig(segment_bytes=segment_bytes))
    assert await max_timestamp(log) == (50, 8)


@pytest.mark.parametrize("segment_bytes", [2**30, 100])
@pytest.mark.parametrize(
    ("log_start_offset", "found"),
    [(5, (50, 8)), (8, (50, 8)), (9, (45, 10)), (10, (45, 10)), (11, None)],
)
async def test_the_record_with_the_largest_time_is_found_from_the_log_start_on(
    segment_bytes: int, log_start_offset: int, found: tuple[int, int] | None
) -> None:
    log = await log_of(TIMES, LogConfig(segment_bytes=segment_bytes))
    log.delete_records(log_start_offset)
    assert await max_timestamp(log) == found


async def test_record_with_the_largest_time_may_be_in_the_rest_of_a_batch() -> None:
    log = await log_of([[90, 40, 60], [50], [60]])
    log.delete_records(1)
    assert await max_timestamp(log) == (60, 2)
    log.delete_records(3)
    assert await max_timestamp(log) == (60, 6)


async def test_log_without_records_has_no_times() -> None:
    log = await log_of([])
    assert (await max_timestamp(log), await offset_for_timestamp(log, 0)) == (None, None)
    append_deltas(log, 3)
    assert (await max_timestamp(log), await offset_for_timestamp(log, 0)) == (None, None)


async def test_records_without_a_time_have_none() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, timestamp_ms=-1)
    assert await max_timestamp(log) is None


MANY = SMALL_RECORDS_MAX + 1


class Searched(NamedTuple):
    """A log of a batch of many records with the time 10, and one of a record with the time 20."""

    filesystem: MemoryFileSystem
    log: PartitionLog
    work: StepwiseWork

    async def meanwhile(
        self, happens: Callable[[], object], timestamp_ms: int
    ) -> asyncio.Task[TimedOffset | None]:
        """A search that is inside the batch when something happens."""
        self.filesystem.hold()
        search = asyncio.create_task(self.log.offset_for_timestamp(timestamp_ms, self.work))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not search.done()
        happens()
        self.filesystem.release()
        return search


@pytest.fixture
async def searched() -> Searched:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LogConfig(segment_bytes=500))
    for times in ([10] * MANY, [20]):
        batch = encode_records([Record(n, time_ms, None, b"v") for n, time_ms in enumerate(times)])
        log.append_produced(batch, validated(batch), 0)
    return Searched(filesystem, log, StepwiseWork(filesystem))


async def test_many_records_are_searched_in_a_thread_and_few_on_the_loop(searched: Searched) -> None:
    searched.filesystem.run_count = 0
    assert await searched.log.offset_for_timestamp(15, searched.work) == (20, MANY)
    assert await searched.log.max_timestamp(searched.work) == (20, MANY)
    assert searched.filesystem.run_count == 0
    assert await searched.log.offset_for_timestamp(5, searched.work) == (10, 0)
    assert searched.filesystem.run_count == 1


async def test_a_log_that_is_closed_meanwhile_ends_the_search(searched: Searched) -> None:
    closing: list[asyncio.Task[None]] = []
    search = await searched.meanwhile(
        lambda: closing.append(asyncio.create_task(searched.log.close(clean=False))), 5
    )
    await asyncio.gather(*closing)
    with pytest.raises(LogClosed):
        await search


async def test_records_deleted_meanwhile_are_not_found(searched: Searched) -> None:
    assert await (await searched.meanwhile(lambda: searched.log.delete_records(3), 5)) == (10, 3)
    assert await (await searched.meanwhile(lambda: searched.log.delete_records(MANY), 5)) == (20, MANY)


async def test_a_segment_removed_meanwhile_restarts_the_search(searched: Searched) -> None:
    log = searched.log
    assert log.segment_count == 2

    def retention() -> None:
        log.delete_records(MANY)
        log.state.segments.drop_first(1)[0].close()  # like retention, whose threads would wait

    assert await (await searched.meanwhile(retention, 5)) == (20, MANY)


class Cleaned(NamedTuple):
    """A log in which the cleaner may merge two segments: [0] many records, the first (time 30) deleted, the
    others with the time 10; [1] and [2] obsolete share state, behind a record with the time 20 and 25; [3]
    the newer checkpoint.
    """

    threads: MemoryFileSystem
    """The threads of the search; the cleaner has others."""
    log: PartitionLog
    work: StepwiseWork

    async def cleaned_while(self, search: Coroutine[Any, Any, TimedOffset | None]) -> TimedOffset | None:
        """The result of a search that is inside the first segment when the others are cleaned."""
        self.threads.hold()
        task = asyncio.create_task(search)
        for _ in range(10):
            await asyncio.sleep(0)
        first, second, third, active = self.log.state.segments
        assert await clean(self.log) is not None
        assert not task.done()
        left = list(self.log.state.segments)
        assert left == [first, left[1], active]
        assert left[1] not in (second, third)
        self.threads.release()
        return await task


@pytest.fixture
async def cleaned() -> Cleaned:
    log, threads = await open_log(MemoryFileSystem(), config=SMALL), MemoryFileSystem()
    many = encode_records([Record(n, 10 if n else 30, None, b"v" * 20) for n in range(MANY)])
    log.append_produced(many, validated(many), 0)
    log.delete_records(1)
    for timestamp_ms in (20, 25):
        await roll(log)
        append(log, timestamp_ms=timestamp_ms)
        append_deltas(log, 5)
    await roll(log)
    append_checkpoint(log)
    return Cleaned(threads, log, StepwiseWork(threads))


@pytest.mark.parametrize(
    ("timestamp_ms", "found"), [(15, (20, MANY)), (20, (20, MANY)), (21, (25, MANY + 6)), (26, None)]
)
async def test_later_segments_cleaned_meanwhile_restart_the_search(
    cleaned: Cleaned, timestamp_ms: int, found: TimedOffset | None
) -> None:
    search = cleaned.log.offset_for_timestamp(timestamp_ms, cleaned.work)
    assert await cleaned.cleaned_while(search) == found


async def test_later_segments_cleaned_meanwhile_still_have_the_largest_time(
    cleaned: Cleaned,
) -> None:
    assert await cleaned.cleaned_while(cleaned.log.max_timestamp(cleaned.work)) == (25, MANY + 6)


async def test_a_roll_meanwhile_makes_no_difference(searched: Searched) -> None:
    def roll() -> None:
        append(searched.log, value=b"v" * MANY * 10, timestamp_ms=30)

    assert await (await searched.meanwhile(roll, 5)) == (10, 0)
    assert searched.log.segment_count == 3


async def test_many_headers_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_lookup, "_HEADERS_PER_TURN", 2)
    log = await log_of([[10]] * 5 + [[20]], LogConfig(index_interval_bytes=1 << 20))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    assert await offset_for_timestamp(log, 15) == (20, log.high_watermark - 1)
    assert turns == 2
    task.cancel()
