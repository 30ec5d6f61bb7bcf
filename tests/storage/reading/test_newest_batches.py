"""The newest batches of a log in memory: the same answers as from the file, within bounds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig, StorageConfig
from barnabas.storage.reading.log_slice import BatchSlice
from barnabas.storage.state.newest_batches import (
    BATCH_BYTES_MAX,
    LOG_BYTES_MAX,
    OBJECT_BYTES,
    KeptBatches,
    NewestBatches,
)
from barnabas.storage.state.shared_parts import SharedParts
from tests.storage.log_building import DIRECTORY, NOW_MS, append, append_deltas, open_log
from tests.storage.memory_filesystem import MemoryFileSystem


async def keeping_log(filesystem: MemoryFileSystem, kept: KeptBatches | None = None) -> PartitionLog:
    """A log that keeps its newest batches."""
    shared = SharedParts.make(filesystem, DIRECTORY, StorageConfig().open_files_max)
    shared = shared._replace(kept_batches=kept or KeptBatches())
    return await open_log(filesystem, shared=shared)


def content(read: BatchSlice) -> list[tuple[int, int, bytes]]:
    """The bounds and the bytes of each batch that was read."""
    return [
        (span.base_offset, span.last_offset, bytes(read.data[span.start : span.end])) for span in read.batches
    ]


def appended(log: PartitionLog, seed: int) -> None:
    """Batches of data with share state between some of them."""
    chance = random.Random(seed)
    for _ in range(40):
        if chance.random() < 0.5:
            append_deltas(log, chance.randint(1, 3))
        append(log, chance.choice([1, 1, 3, 20]), value=bytes(chance.choice([1, 10, 50])))


@pytest.mark.parametrize("seed", range(20))
async def test_reads_from_memory_equal_those_from_the_file(seed: int) -> None:
    filesystem, chance = MemoryFileSystem(), random.Random(seed)
    keeping, plain = await keeping_log(filesystem), await open_log(MemoryFileSystem())
    for log in (keeping, plain):
        appended(log, seed)
    filesystem.read_count = 0
    for offset in range(plain.log_end_offset + 1):
        limits: dict[str, Any] = {
            "records_max": chance.choice([1, 5, 1_000]),
            "bytes_max": chance.choice([1, 300, 1 << 20]),
            "upper_offset": chance.choice([None, chance.randint(offset, plain.log_end_offset)]),
            "at_least_one": chance.random() < 0.5,
        }
        assert content(keeping.read_batches(offset, **limits)) == content(
            plain.read_batches(offset, **limits)
        )
    assert filesystem.read_count == 0


@pytest.mark.parametrize("seed", range(20))
async def test_plain_reads_from_memory_equal_those_from_the_file(seed: int) -> None:
    filesystem, chance = MemoryFileSystem(), random.Random(seed)
    keeping, plain = await keeping_log(filesystem), await open_log(MemoryFileSystem())
    for log in (keeping, plain):
        appended(log, seed)
    filesystem.read_count = 0
    for offset in range(plain.high_watermark):
        limits: dict[str, Any] = {
            "bytes_max": chance.choice([1, 300, 1 << 20]),
            "upper_offset": chance.choice([None, chance.randint(offset, plain.log_end_offset)]),
            "at_least_one": chance.random() < 0.5,
        }
        slices = [log.read(offset, **limits) for log in (keeping, plain)]
        from_memory, from_file = ((b"".join(read.buffers), *read[1:]) for read in slices)
        assert from_memory == from_file
    assert filesystem.read_count == 0


async def test_of_a_log_that_grows_the_newest_batches_stay_in_memory() -> None:
    filesystem = MemoryFileSystem()
    log = await keeping_log(filesystem)
    for _ in range(100):
        append(log, value=bytes(1_000))
    filesystem.read_count = 0
    assert log.read_batches(99, records_max=1, bytes_max=1).batches[0].base_offset == 99
    assert log.read_batches(70, records_max=1, bytes_max=1).batches[0].base_offset == 70
    assert filesystem.read_count == 0
    assert log.read_batches(0, records_max=1, bytes_max=1).batches[0].base_offset == 0
    assert filesystem.read_count == 1


async def test_a_large_batch_and_those_before_it_are_read_from_the_file() -> None:
    filesystem = MemoryFileSystem()
    log = await keeping_log(filesystem)
    append(log)
    append(log, value=bytes(BATCH_BYTES_MAX))
    append(log)
    for offset, is_in_memory in [(2, True), (1, False), (0, False)]:
        filesystem.read_count = 0
        assert log.read_batches(offset, records_max=1, bytes_max=1).batches[0].base_offset == offset
        assert (filesystem.read_count == 0) == is_in_memory


async def test_records_that_have_left_the_log_leave_the_memory() -> None:
    filesystem = MemoryFileSystem()
    log = await keeping_log(filesystem, kept := KeptBatches(1 << 20))
    for _ in range(3):
        append(log, value=bytes(400))
    log.config = LogConfig(segment_bytes=100, retention_ms=1)
    append(log)
    log.delete_records(3)
    await log.enforce_retention(NOW_MS)
    assert kept.bytes_left == 1 << 20
    assert content(log.read_batches(3, records_max=1, bytes_max=1))[0][:2] == (3, 3)


def test_the_memory_of_all_logs_is_bounded() -> None:
    kept = KeptBatches(bytes_max=3_000)
    logs = [NewestBatches(kept) for _ in range(3)]
    for log in logs:
        log.add(0, 0, 0, bytes(1_000 - OBJECT_BYTES))
    logs[0].add(1, 1, 1, bytes(500 - OBJECT_BYTES))
    assert [log.size_bytes for log in logs] == [1_500, 0, 1_000], "the second was appended to least recently"
    assert kept.bytes_left == 500
    assert logs[1].start_offset > 1 << 62


def test_the_memory_of_a_log_is_bounded() -> None:
    kept = KeptBatches(bytes_max=1 << 20)
    log = NewestBatches(kept)
    for offset in range(100):
        log.add(offset, offset, offset, bytes(BATCH_BYTES_MAX))
        assert log.size_bytes <= LOG_BYTES_MAX
        assert kept.bytes_left + log.size_bytes == 1 << 20
        assert [batch.data for batch in log.read(offset, offset + 1, 1)] == [bytes(BATCH_BYTES_MAX)]
    log.forget()
    assert kept.bytes_left == 1 << 20
