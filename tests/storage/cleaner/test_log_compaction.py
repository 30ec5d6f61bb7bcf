"""Compaction of a whole log: passes, settings of the topic, and the resulting log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.cleaner.offset_map import ENTRY_BYTES
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.log.partition_log import PartitionLog
from tests.storage.cleaner.dirty_logs import (
    COMPACTED,
    append_batch,
    batches_on_disk,
    clean,
    keyed,
    keyed_batch,
    latest_by_key,
    records_read,
    roll,
)
from tests.storage.log_building import (
    DIRECTORY,
    NOW_MS,
    append_checkpoint,
    append_deltas,
    headers_of,
    offset_for_timestamp,
    open_log,
    small_storage,
)
from tests.storage.memory_filesystem import MemoryFileSystem


async def fill(
    log: PartitionLog, count: int, *, key_count: int, codec: Compression = Compression.NONE
) -> None:
    """Appends `count` records with `key_count` keys in turn, ten in each segment."""
    for number in range(count):
        records = [(b"key %d" % (number % key_count), b"value %d" % number)]
        append_batch(log, keyed_batch(records, timestamp_ms=NOW_MS + number, compression=codec))
        if number % 10 == 9:
            await roll(log)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
async def test_the_latest_record_of_each_key_stays(codec: Compression) -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    await fill(log, 40, key_count=3, codec=codec)
    before = records_read(log)
    cleaned = await clean(log)
    assert cleaned is not None
    assert cleaned.compacted_offset == 40
    assert records_read(log) == before[-3:]
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (40, 40, 0)
    await log.close()
    again = await open_log(filesystem, config=COMPACTED)
    assert records_read(again) == before[-3:]
    assert (again.log_end_offset, again.high_watermark) == (40, 40)
    await again.close()


async def test_keys_beyond_a_small_map_wait_for_the_next_pass() -> None:
    filesystem = MemoryFileSystem()
    storage = small_storage(cleaner_dedupe_buffer_bytes=4 * ENTRY_BYTES)
    log = await open_log(filesystem, config=COMPACTED, storage=storage)
    await fill(log, 40, key_count=10)
    before = records_read(log)
    reached, offsets = 0, list[int]()
    while reached < 40:
        cleaned = await clean(log, cleaned_offset=reached)
        assert cleaned is not None
        assert cleaned.compacted_offset is not None
        assert cleaned.compacted_offset > reached
        reached = cleaned.compacted_offset
        offsets.append(reached)
        assert latest_by_key(records_read(log)) == latest_by_key(before)
    assert offsets[:2] == [4, 8]
    assert records_read(log) == before[-10:]
    await log.close()


async def test_the_time_at_a_removed_offset_is_that_of_the_next_record() -> None:
    log = await open_log(MemoryFileSystem(), config=COMPACTED)
    append_batch(log, keyed(b"a", b"1", timestamp_ms=NOW_MS, producer_id=9, base_sequence=0))
    append_batch(log, keyed(b"b", b"1", timestamp_ms=NOW_MS + 1))
    append_batch(log, keyed(b"a", b"2", timestamp_ms=NOW_MS + 2))
    append_batch(log, keyed(b"b", b"2", timestamp_ms=NOW_MS + 3))
    await roll(log)
    await clean(log)
    emptied, *left = headers_of(log.read(0, bytes_max=2**30).buffers)
    assert (emptied.record_count, [one.base_offset for one in left]) == (0, [2, 3])
    assert [log.timestamp_at(offset) for offset in range(4)] == [
        NOW_MS + 2,
        NOW_MS + 2,
        NOW_MS + 2,
        NOW_MS + 3,
    ]
    await log.close()


async def test_the_active_segment_is_neither_compacted_nor_a_reason_to() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    await fill(log, 10, key_count=2)
    append_batch(log, keyed(b"key 0", b"newest"))
    await clean(log)
    assert [record.value for record in records_read(log)] == [b"value 8", b"value 9", b"newest"]
    await log.close()


async def test_min_compaction_lag_keeps_young_records() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=replace(COMPACTED, min_compaction_lag_ms=100))
    await fill(log, 20, key_count=2)
    cleaned = await clean(log, now_ms=NOW_MS + 9 + 100)
    assert cleaned is not None
    assert cleaned.compacted_offset == 10
    assert [record.offset for record in records_read(log)] == [8, 9, *range(10, 20)]
    await log.close()


async def test_tombstones_stay_for_delete_retention() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=replace(COMPACTED, delete_retention_ms=1_000))
    append_batch(log, keyed(b"a", b"1"))
    append_batch(log, keyed(b"b", b"2"))
    append_batch(log, keyed(b"a", None))
    await roll(log)
    await clean(log, now_ms=NOW_MS)
    assert [(record.key, record.value) for record in records_read(log)] == [(b"b", b"2"), (b"a", None)]
    await clean(log, now_ms=NOW_MS + 999)
    assert len(records_read(log)) == 2
    await clean(log, now_ms=NOW_MS + 1_000)
    assert [record.key for record in records_read(log)] == [b"b"]
    assert batches_on_disk(filesystem)[-1].record_count == 0, "the last batch tells where the segment ends"
    await log.close()


async def test_a_producer_continues_after_its_records_are_removed() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    for sequence in range(3):
        append_batch(log, keyed(b"a", b"9", producer_id=9, producer_epoch=0, base_sequence=sequence))
    for number in range(3):
        append_batch(log, keyed(b"a", b"%d" % number))
    await roll(log)
    await clean(log)
    assert [one.producer_id for one in batches_on_disk(filesystem)] == [9, -1]
    await log.close()
    for path in [path for path in filesystem.files if path.endswith(".snapshot")]:
        del filesystem.files[path]
    again = await open_log(filesystem, config=COMPACTED)
    appended = append_batch(again, keyed(b"a", b"9", producer_id=9, producer_epoch=0, base_sequence=3))
    assert appended.error is None
    await again.close()


async def test_share_state_and_records_are_removed_in_one_pass() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    for number in range(4):
        append_batch(log, keyed(b"a", b"%d" % number))
        append_deltas(log, 2)
    await roll(log)
    append_checkpoint(log)
    await clean(log)
    left = [(one.base_offset, one.last_offset, is_mark(one)) for one in batches_on_disk(filesystem)]
    assert left == [(1, 2, True), (4, 5, True), (7, 8, True), (9, 9, False), (10, 11, True), (12, 12, False)]
    assert log.control_runs.data_count(0, 12) == 4, "removed records count as data, as in Kafka"
    await log.close()


async def test_a_log_that_is_not_compacted_keeps_its_records() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=replace(COMPACTED, compact_enabled=False))
    await fill(log, 20, key_count=2)
    assert (await log.plan_cleaning(0, NOW_MS)).dirty is None
    await clean(log)
    assert len(records_read(log)) == 20
    await log.close()


async def test_a_damaged_batch_ends_the_cleaning() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    await fill(log, 20, key_count=2)
    filesystem.files[f"{DIRECTORY}/{0:020d}.log"][100] ^= 1
    with pytest.raises(RecordFormatError, match="damaged batch at"):
        await clean(log)
    assert log.offline is None
    assert not [path for path in filesystem.files if path.endswith(".cleaned")]
    await log.close()


async def test_offsets_behind_a_hole_are_read_from_the_next_batch() -> None:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=COMPACTED)
    await fill(log, 20, key_count=2)
    await clean(log)
    read = log.read_batches(0, records_max=100, bytes_max=10_000)
    assert [span.base_offset for span in read.batches] == [18, 19]
    assert await offset_for_timestamp(log, NOW_MS) == (NOW_MS + 18, 18)
    await log.close()


async def test_compact_and_delete_expires_segments_too() -> None:
    filesystem = MemoryFileSystem()
    config = replace(COMPACTED, delete_enabled=True, retention_ms=1_000)
    log = await open_log(filesystem, config=config)
    await fill(log, 20, key_count=2)
    await clean(log)
    assert log.segment_count == 2
    assert await log.enforce_retention(NOW_MS + 19 + 1_001) == 1
    assert log.log_start_offset == 20
    await log.close()
