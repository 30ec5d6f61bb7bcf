import pytest

from barnabas.protocol.records import Record, encode_records
from barnabas.storage.log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import append, append_deltas, open_log, validated
from tests.storage.memory_filesystem import MemoryFileSystem


async def log_of(times: list[list[int]], config: LogConfig | None = None) -> PartitionLog:
    """A batch of records with these timestamps each, and share state between them."""
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
async def test_first_record_at_or_after_a_time(
    timestamp_ms: int, found: tuple[int, int] | None, segment_bytes: int, index_interval_bytes: int
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
    log = await log_of(TIMES, config)
    assert log.offset_for_timestamp(timestamp_ms) == found


async def test_records_below_the_log_start_are_not_found() -> None:
    log = await log_of(TIMES)
    log.delete_records(2)
    assert log.offset_for_timestamp(0) == (30, 2)


@pytest.mark.parametrize("segment_bytes", [2**30, 100])
async def test_record_with_the_largest_time(segment_bytes: int) -> None:
    log = await log_of(TIMES, LogConfig(segment_bytes=segment_bytes))
    assert log.max_timestamp() == (50, 8)


@pytest.mark.parametrize("segment_bytes", [2**30, 100])
@pytest.mark.parametrize(
    ("log_start_offset", "found"),
    [(5, (50, 8)), (8, (50, 8)), (9, (45, 10)), (10, (45, 10)), (11, None)],
)
async def test_record_with_the_largest_time_from_the_log_start_on(
    segment_bytes: int, log_start_offset: int, found: tuple[int, int] | None
) -> None:
    log = await log_of(TIMES, LogConfig(segment_bytes=segment_bytes))
    log.delete_records(log_start_offset)
    assert log.max_timestamp() == found


async def test_record_with_the_largest_time_may_be_in_what_is_left_of_a_batch() -> None:
    log = await log_of([[90, 40, 60], [50], [60]])
    log.delete_records(1)
    assert log.max_timestamp() == (60, 2)
    log.delete_records(3)
    assert log.max_timestamp() == (60, 6)


async def test_log_without_records_has_no_times() -> None:
    log = await log_of([])
    assert (log.max_timestamp(), log.offset_for_timestamp(0)) == (None, None)
    append_deltas(log, 3)
    assert (log.max_timestamp(), log.offset_for_timestamp(0)) == (None, None)


async def test_records_without_a_time_have_none() -> None:
    log = await open_log(MemoryFileSystem())
    append(log, timestamp_ms=-1)
    assert log.max_timestamp() is None
