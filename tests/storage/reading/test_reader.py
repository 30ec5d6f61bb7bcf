"""Reads of a log for fetches and share groups, compared with a naive reader."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import LogSlice, PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append,
    append_deltas,
    base_offsets_read,
    headers_of,
    open_log,
    small_storage,
    values_read,
)
from tests.storage.memory_filesystem import MemoryFileSystem
from tests.storage.transactions import Producer

LARGE = 2**30


class Model:
    """(base offset, last offset, size in bytes) of each data batch of a log."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int]] = []

    def from_offset(self, offset: int) -> list[tuple[int, int, int]]:
        return [batch for batch in self.batches if batch[1] >= offset]


async def filled(
    random: Random, count: int, config: LogConfig, filesystem: MemoryFileSystem | None = None
) -> tuple[PartitionLog, Model]:
    log, model = await open_log(filesystem or MemoryFileSystem(), config=config), Model()
    for number in range(count):
        if random.random() < 0.5:
            append_deltas(log, random.choice([1, 1, 2, 5]))
            continue
        before_bytes = log.size_bytes
        value = b"v" * random.choice([0, 10, 10, 300])
        appended = append(log, random.choice([1, 1, 1, 3, 20]), value=value, timestamp_ms=NOW_MS + number)
        model.batches.append(
            (appended.result().base_offset, appended.result().last_offset, log.size_bytes - before_bytes)
        )
    return log, model


LOGS = {
    "seed": st.integers(0, 2**32),
    "config": st.builds(
        LogConfig,
        index_interval_bytes=st.sampled_from([0, 100, 4096]),
        segment_bytes=st.sampled_from([800, 5000, LARGE]),
    ),
}


@settings(max_examples=60)
@given(**LOGS, bytes_max=st.sampled_from([1, 100, 1000, LARGE]))
async def test_fetching_to_the_end_sees_all_data_once(seed: int, config: LogConfig, bytes_max: int) -> None:
    log, model = await filled(Random(seed), 60, config)
    expected = [base_offset for base_offset, _, _ in model.batches]
    assert base_offsets_read(log, 0, bytes_max) == expected


@settings(max_examples=60)
@given(**LOGS, data=st.data())
async def test_read_returns_the_result_of_a_naive_reader(
    seed: int, config: LogConfig, data: st.DataObject
) -> None:
    log, model = await filled(Random(seed), 40, config)
    for _ in range(10):
        offset = data.draw(st.integers(0, log.log_end_offset))
        upper_offset = data.draw(st.none() | st.integers(offset, log.log_end_offset))
        bytes_max = data.draw(st.integers(1, 3000))
        read = log.read(offset, bytes_max=bytes_max, upper_offset=upper_offset)
        end = log.high_watermark if upper_offset is None else min(upper_offset, log.high_watermark)
        expected = [batch for batch in model.from_offset(offset) if offset < end and batch[0] < end]
        got = [(header.base_offset, header.last_offset) for header in headers_of(read.buffers)]
        assert got == [batch[:2] for batch in expected][: len(got)]
        assert read.size_bytes == sum(map(len, read.buffers))
        assert (read.size_bytes > 0) == (offset < end and bool(expected))
        if expected:
            assert read.first_offset == expected[0][0]
            assert got
            assert read.size_bytes <= max(bytes_max, expected[0][2])


@settings(max_examples=80)
@given(**LOGS, data=st.data())
async def test_read_batches_returns_the_result_of_a_naive_reader(
    seed: int, config: LogConfig, data: st.DataObject
) -> None:
    log, model = await filled(Random(seed), 40, config)
    for _ in range(10):
        offset = data.draw(st.integers(0, log.log_end_offset))
        upper_offset = data.draw(st.none() | st.integers(offset, log.log_end_offset))
        records_max, bytes_max = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 3000))
        at_least_one = data.draw(st.booleans())
        read = log.read_batches(
            offset,
            records_max=records_max,
            bytes_max=bytes_max,
            upper_offset=upper_offset,
            at_least_one=at_least_one,
        )
        end = log.high_watermark if upper_offset is None else min(upper_offset, log.high_watermark)
        expected = [batch for batch in model.from_offset(offset) if offset < end and batch[0] < end]
        got = [(span.base_offset, span.last_offset, span.end - span.start) for span in read.batches]
        assert got == expected[: len(got)]
        assert bool(got) == bool(expected and (at_least_one or expected[0][2] <= bytes_max))
        assert sum(last + 1 - max(base, offset) for base, last, _ in got[:-1]) < records_max
        assert len(got) <= at_least_one or sum(size for _, _, size in got) <= bytes_max
        for span in read.batches:
            (header,) = headers_of([read.data[span.start : span.end]])
            assert (header.base_offset, header.last_offset) == (span.base_offset, span.last_offset)
        assert headers_of(read.pieces()) == [
            header for span in read.batches for header in headers_of([read.data[span.start : span.end]])
        ]


@settings(max_examples=40)
@given(**LOGS, records_max=st.sampled_from([1, 7, 500]), bytes_max=st.sampled_from([1, 700, LARGE]))
async def test_continuing_share_reader_sees_all_data_once(
    seed: int, config: LogConfig, records_max: int, bytes_max: int
) -> None:
    log, model = await filled(Random(seed), 60, config)
    seen: list[int] = []
    offset = 0
    while batches := log.read_batches(offset, records_max=records_max, bytes_max=bytes_max).batches:
        seen += [span.base_offset for span in batches]
        offset = log.control_runs.next_data_offset(batches[-1].last_offset + 1)
    assert seen == [base_offset for base_offset, _, _ in model.batches]


async def test_adjoining_batches_are_one_piece_and_share_state_parts_them() -> None:
    log = await open_log(MemoryFileSystem())
    for _ in range(3):
        append(log)
    append_deltas(log, 2)
    append(log)
    read = log.read_batches(0, records_max=100, bytes_max=LARGE)
    assert [len(headers_of([piece])) for piece in read.pieces()] == [3, 1]
    assert [len(headers_of([piece])) for piece in read.pieces(1, 2)] == [2]
    assert [len(headers_of([piece])) for piece in read.pieces(2)] == [1, 1]
    assert read.pieces(4) == []


async def test_continuing_reader_does_not_search() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=100))
    for _ in range(100):
        append(log, 5)
        append_deltas(log)
    log.read_batches(0, records_max=50, bytes_max=LARGE)
    filesystem.read_count = 0
    for offset in range(60, 540, 60):
        assert len(log.read_batches(offset, records_max=50, bytes_max=LARGE).batches) == 10
    assert filesystem.read_count == 8


async def test_consumer_at_the_end_of_the_log_reads_on_without_a_search() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=LogConfig(index_interval_bytes=10**6))
    for _ in range(50):
        append(log)
    log.read(0, bytes_max=LARGE)
    append_deltas(log, 3)
    appended = append(log)
    filesystem.read_count = 0
    assert headers_of(log.read(50, bytes_max=LARGE).buffers)[0].base_offset == appended.result().base_offset
    assert filesystem.read_count <= 2


async def test_long_run_of_share_state_is_not_read() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    append(log)
    await append_deltas(log, 2000)
    append(log)
    first, second = log.read(0, bytes_max=LARGE).buffers
    assert len(first) == len(second)
    filesystem.read_count = 0
    (span,) = log.read_batches(1, records_max=1, bytes_max=LARGE).batches
    assert span.base_offset == 2001
    assert filesystem.read_count == 2


async def test_first_batch_may_be_larger_than_asked_for() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, value=b"v" * 1000)
    append(log)
    (header,) = headers_of(log.read(0, bytes_max=10).buffers)
    assert header.base_offset == 0
    assert log.read(0, bytes_max=10, at_least_one=False) == LogSlice([], 0, 0)
    assert len(log.read_batches(0, records_max=1, bytes_max=10).batches) == 1


async def test_a_batch_that_is_larger_than_asked_for_is_read_once() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    append(log, value=b"v" * 100_000)
    append(log)
    filesystem.read_count = 0
    (span,) = log.read_batches(0, records_max=500, bytes_max=10_000).batches
    assert span.base_offset == 0
    assert filesystem.read_count == 2, "a first window, and the batch"


async def test_last_batch_of_a_fetch_may_be_cut_short() -> None:
    log = await open_log(MemoryFileSystem())
    for _ in range(3):
        append(log)
    one = log.size_bytes // 3
    assert log.read(0, bytes_max=one + 5).size_bytes == one + 5


@pytest.mark.parametrize("offset", [-1, 2, 9])
async def test_offset_outside_the_log_is_refused(offset: int) -> None:
    log = await open_log(MemoryFileSystem())
    append(log, 8)
    log.delete_records(3)
    for read in (
        lambda: log.read(offset, bytes_max=100),
        lambda: log.read_batches(offset, records_max=1, bytes_max=100),
        lambda: log.timestamp_at(offset),
    ):
        with pytest.raises(ApiError) as refused:
            read()
        assert refused.value.code is ErrorCode.offset_out_of_range


async def test_nothing_is_read_at_the_end_or_in_the_share_state_behind_it() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, 2)
    append_deltas(log, 3)
    for offset in (2, 3, 5):
        assert log.read(offset, bytes_max=100) == LogSlice([], 0, offset)
        assert log.read_batches(offset, records_max=1, bytes_max=100).batches == []


async def test_reading_inside_a_batch_begins_with_it() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, 10)
    read = log.read(7, bytes_max=LARGE)
    assert read.first_offset == 0
    assert log.read_batches(7, records_max=3, bytes_max=LARGE).batches[0].base_offset == 0


@settings(max_examples=40)
@given(**LOGS, is_reopened=st.booleans())
async def test_the_time_at_an_offset_is_that_of_the_batch_that_holds_or_follows_it(
    seed: int, config: LogConfig, is_reopened: bool
) -> None:
    filesystem = MemoryFileSystem()
    log, model = await filled(Random(seed), 40, config, filesystem)
    times = [headers_of(log.read(one[0], bytes_max=1).buffers)[0].base_timestamp_ms for one in model.batches]
    if is_reopened:  # the first read verifies the batches
        await log.close()
        log = await open_log(filesystem, config=config, recovery_point=log.recovery_point)
    for offset in range(log.log_end_offset):
        following = (time for batch, time in zip(model.batches, times, strict=True) if batch[1] >= offset)
        assert log.timestamp_at(offset) == next(following, None)


async def test_the_time_is_that_of_records_and_not_of_markers() -> None:
    log = await open_log(MemoryFileSystem())
    producer = Producer(log, 1)
    producer.send()
    producer.commit()
    assert log.timestamp_at(1) is None
    append(log, timestamp_ms=NOW_MS + 1)
    assert [log.timestamp_at(offset) for offset in range(3)] == [NOW_MS, NOW_MS + 1, NOW_MS + 1]


async def test_there_is_no_time_without_a_batch_or_a_timestamp() -> None:
    log = await open_log(MemoryFileSystem())
    assert log.timestamp_at(0) is None
    append(log, timestamp_ms=-1)
    assert log.timestamp_at(0) is None
    assert log.timestamp_at(1) is None


async def test_many_segments_stay_within_the_bound_of_open_files() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(
        filesystem, config=LogConfig(segment_bytes=300), storage=small_storage(open_files_max=4)
    )
    for _ in range(60):
        append(log, value=b"v" * 100)
        append_deltas(log)
    assert log.segment_count > 20
    expected = values_read(log)
    assert len(expected) == 60
    assert filesystem.open_count <= 4
    assert values_read(log) == expected


async def test_log_file_that_became_shorter_is_an_error_of_the_disk() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem)
    append(log, 3)
    del filesystem.files[f"{DIRECTORY}/{0:020d}.log"][50:]
    with pytest.raises(StorageError):
        log.read(0, bytes_max=LARGE)
    with pytest.raises(StorageError):
        log.read_batches(0, records_max=1, bytes_max=LARGE)


async def test_reading_from_the_beginning_needs_no_control_runs_of_old_segments() -> None:
    filesystem, config = MemoryFileSystem(), LogConfig(segment_bytes=600, index_interval_bytes=150)
    log = await open_log(filesystem, config=config)
    for _ in range(30):
        append(log)
        append_deltas(log)
    await log.close()
    reopened = await open_log(filesystem, config=config, recovery_point=log.recovery_point)
    known_from = reopened.control_runs.known_from
    assert known_from > 0
    assert base_offsets_read(reopened, 0, 1) == list(range(0, 60, 2))
    assert reopened.control_runs.known_from == known_from
