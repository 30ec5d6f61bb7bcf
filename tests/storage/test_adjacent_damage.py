"""Adjacent damaged batches: recovery keeps the good durable ones around them, and cuts a torn tail."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict

from barnabas.protocol.record_batch import build_batch
from barnabas.storage.errors import CorruptBatch
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.damaged_logs import INDEXED, LOG_PATH, batch_starts, fetch, spoil
from tests.storage.log_building import append, open_log
from tests.storage.memory_filesystem import MemoryFileSystem

COUNT = 12
"""The batches of the log, with one record each. The values are the offsets."""
FIRST_DAMAGED = 3

SPARSE = LogConfig()
"""The offset index of a log of this size is empty."""
OLD_SEGMENT = LogConfig(segment_bytes=750)
"""The first segment has ten batches, and no entry in its offset index."""

COUNTS = pytest.mark.parametrize("damaged_count", [1, 2, 5])
INDEXES = pytest.mark.parametrize("config", [SPARSE, INDEXED], ids=["no index entries", "index entries"])


async def written(config: LogConfig) -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    log = await open_log(filesystem, config=config)
    for offset in range(COUNT):
        append(log, value=b"%d" % offset)
    await log.close()
    return filesystem


def values(offsets: range) -> list[tuple[int, bytes]]:
    return [(offset, b"%d" % offset) for offset in offsets]


def spoil_all(filesystem: MemoryFileSystem, numbers: range) -> None:
    """Flips a bit in the record of each of these batches."""
    for number in numbers:
        spoil(filesystem, number)


def set_size(filesystem: MemoryFileSystem, number: int, size: bytes) -> None:
    """Damages the size in the header of this batch."""
    start = batch_starts(filesystem)[number] + 8
    filesystem.files[LOG_PATH][start : start + 4] = size


def assert_refused(log: PartitionLog, offsets: range) -> None:
    for offset in offsets:
        with pytest.raises(CorruptBatch):
            fetch(log, offset)


@COUNTS
@INDEXES
async def test_good_batches_behind_damaged_ones_stay(
    damaged_count: int, config: LogConfig, log_lines: list[EventDict]
) -> None:
    filesystem = await written(config)
    damaged = range(FIRST_DAMAGED, FIRST_DAMAGED + damaged_count)
    spoil_all(filesystem, damaged)
    before = bytes(filesystem.files[LOG_PATH])
    log = await open_log(filesystem, config=config, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert log.log_end_offset == log.high_watermark == COUNT
    starts = [*batch_starts(filesystem), len(before)]
    found = [(line["event"], line["position"], line["end"]) for line in log_lines]
    if config is SPARSE:
        assert found == [("durable batches are damaged", starts[damaged.start], starts[damaged.stop])]
    else:
        assert not found, "the scan begins at the last entry of the index, behind the damage"
    assert fetch(log, 0) == values(range(damaged.start))
    assert_refused(log, damaged)
    assert fetch(log, damaged.stop) == values(range(damaged.stop, COUNT))


@COUNTS
@INDEXES
async def test_damaged_batches_at_the_end_stay_and_their_offsets_are_not_used_again(
    damaged_count: int, config: LogConfig
) -> None:
    filesystem = await written(config)
    damaged = range(COUNT - damaged_count, COUNT)
    spoil_all(filesystem, damaged)
    before = bytes(filesystem.files[LOG_PATH])
    log = await open_log(filesystem, config=config, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert append(log, value=b"%d" % COUNT).result().base_offset == COUNT
    await log.close()
    again = await open_log(filesystem, config=config, recovery_point=COUNT + 1)
    assert fetch(again, 0) == values(range(damaged.start))
    assert_refused(again, damaged)
    assert fetch(again, COUNT) == values(range(COUNT, COUNT + 1))


@COUNTS
@INDEXES
@pytest.mark.parametrize("kept_bytes", [1, 60, 61, 69])
async def test_a_torn_batch_behind_damaged_ones_is_cut(
    damaged_count: int, config: LogConfig, kept_bytes: int, log_lines: list[EventDict]
) -> None:
    """The last batch was not durable, and the crash left a part of it."""
    filesystem = await written(config)
    durable_end = COUNT - 1
    spoil_all(filesystem, range(durable_end - damaged_count, durable_end))
    torn_at = batch_starts(filesystem)[durable_end]
    content = filesystem.files[LOG_PATH]
    del content[torn_at + kept_bytes :]
    before = bytes(content[:torn_at])
    log = await open_log(filesystem, config=config, recovery_point=durable_end)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert log.log_end_offset == durable_end
    assert [(line["log_level"], line["event"]) for line in log_lines] == [
        ("error", "durable batches are damaged"),
        ("warning", "a segment is cut behind its last whole batch"),
    ]
    append(log, value=b"new")
    assert fetch(log, durable_end) == [(durable_end, b"new")]


async def test_zeros_behind_a_damaged_batch_are_cut() -> None:
    filesystem = await written(SPARSE)
    spoil(filesystem, COUNT - 1)
    before = bytes(filesystem.files[LOG_PATH])
    filesystem.files[LOG_PATH] += bytes(5_000)
    log = await open_log(filesystem, config=SPARSE, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert log.log_end_offset == COUNT


@COUNTS
@INDEXES
async def test_batches_behind_the_recovery_point_are_cut_from_the_first_bad_one_on(
    damaged_count: int, config: LogConfig
) -> None:
    """They were not durable: without their predecessors they are not a part of the log."""
    filesystem = await written(config)
    spoil_all(filesystem, range(FIRST_DAMAGED, FIRST_DAMAGED + damaged_count))
    kept_bytes = batch_starts(filesystem)[FIRST_DAMAGED]
    log = await open_log(filesystem, config=config, recovery_point=FIRST_DAMAGED)
    assert len(filesystem.files[LOG_PATH]) == kept_bytes
    assert log.log_end_offset == FIRST_DAMAGED


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", bytes(4), b"\0\0\0\x40"], ids=["large", "0", "small"])
@COUNTS
async def test_nothing_is_cut_if_damaged_sizes_hide_durable_batches(size: bytes, damaged_count: int) -> None:
    """Without an index no batch behind them is found; the bytes stay for a repair, and the log goes on."""
    filesystem = await written(SPARSE)
    damaged = range(FIRST_DAMAGED, FIRST_DAMAGED + damaged_count)
    spoil_all(filesystem, damaged)
    set_size(filesystem, damaged[-1], size)
    before = bytes(filesystem.files[LOG_PATH])
    log = await open_log(filesystem, config=SPARSE, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert append(log, value=b"new").result().base_offset == COUNT
    await log.close()
    again = await open_log(filesystem, config=SPARSE, recovery_point=COUNT + 1)
    assert fetch(again, 0) == values(range(FIRST_DAMAGED))
    assert_refused(again, range(FIRST_DAMAGED, COUNT))
    assert fetch(again, COUNT) == [(COUNT, b"new")]


async def test_an_index_entry_leads_to_a_damaged_batch_and_its_size_leads_on() -> None:
    filesystem = await written(INDEXED)
    starts = batch_starts(filesystem)
    index = filesystem.files[LOG_PATH.replace(".log", ".index")]
    del index[(FIRST_DAMAGED + 1) * 8 :]  # the last entry is that of the second damaged batch
    spoil(filesystem, FIRST_DAMAGED + 1)
    filesystem.files[LOG_PATH][starts[FIRST_DAMAGED] + 8] = 0x7F
    log = await open_log(filesystem, config=SPARSE, recovery_point=COUNT)
    assert fetch(log, FIRST_DAMAGED + 2) == values(range(FIRST_DAMAGED + 2, COUNT))


async def test_a_record_that_looks_like_a_durable_batch_is_kept_and_never_served() -> None:
    inner = build_batch(COUNT, [(None, b"inner")], leader_epoch=0, timestamp_ms=1)
    filesystem = await written(SPARSE)
    content = filesystem.files[LOG_PATH]
    outer = build_batch(COUNT, [(None, inner)], leader_epoch=0, timestamp_ms=1)
    content += outer[:8] + b"\x7f" + outer[9:]
    before = bytes(content)
    log = await open_log(filesystem, config=SPARSE, recovery_point=COUNT + 1)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert log.log_end_offset == COUNT + 1
    assert_refused(log, range(COUNT, COUNT + 1))


@COUNTS
@pytest.mark.parametrize("first_damaged", [0, 3, "last"])
@pytest.mark.parametrize("lost", [".timeindex", ".index", None])
async def test_an_older_segment_keeps_all_its_batches(
    damaged_count: int, first_damaged: int | str, lost: str | None
) -> None:
    """The segment is trusted, or its indexes are made again."""
    filesystem = await written(OLD_SEGMENT)
    segment_end = len(batch_starts(filesystem))
    assert segment_end == COUNT - 2
    first = segment_end - damaged_count if isinstance(first_damaged, str) else first_damaged
    damaged = range(first, first + damaged_count)
    spoil_all(filesystem, damaged)
    before = bytes(filesystem.files[LOG_PATH])
    if lost is not None:
        del filesystem.files[LOG_PATH.replace(".log", lost)]
    log = await open_log(filesystem, config=OLD_SEGMENT, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert log.log_end_offset == COUNT
    assert_refused(log, damaged)
    behind = damaged.stop
    assert fetch(log, behind) == values(range(behind, segment_end if behind < segment_end else COUNT))


async def test_an_older_segment_with_a_torn_end_is_not_cut_when_its_indexes_are_made_again() -> None:
    filesystem = await written(OLD_SEGMENT)
    segment_end = len(batch_starts(filesystem))
    content = filesystem.files[LOG_PATH]
    del content[-5:]
    before = bytes(content)
    del filesystem.files[LOG_PATH.replace(".log", ".timeindex")]
    log = await open_log(filesystem, config=OLD_SEGMENT, recovery_point=COUNT)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert fetch(log, 0) == values(range(segment_end - 1))
    assert_refused(log, range(segment_end - 1, segment_end))
    assert fetch(log, segment_end) == values(range(segment_end, COUNT))
