"""Damage in durable batches that recovery finds: it stays in place, with the batches behind it."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import CorruptBatch, StorageError
from barnabas.storage.format.index_checksums import FILE_NAME as INDEX_CHECKSUMS
from barnabas.storage.format.share_index import group_hash
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.damaged_logs import (
    END_OFFSET,
    INDEXED,
    LOG_PATH,
    VALUES,
    batch_starts,
    fetch,
    reopened,
    spoil,
    written_log,
)
from tests.storage.log_building import DIRECTORY, append, open_log, values_read
from tests.storage.memory_filesystem import MemoryFileSystem

SPARSE = LogConfig()
"""A log of this size has no entry in its offset index: recovery scans all of it."""
BATCH_OF_OFFSET_4 = 4
TWO_SEGMENTS = LogConfig(segment_bytes=650, index_interval_bytes=1)


def control_offsets(log: PartitionLog) -> list[int]:
    return [offset for offset in range(END_OFFSET) if not log.control_runs.data_count(offset, offset)]


async def test_batches_behind_damage_are_kept(log_lines: list[EventDict]) -> None:
    filesystem = await written_log(SPARSE)
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem, SPARSE)
    assert [(line["event"], line["position"]) for line in log_lines if line["log_level"] == "error"] == [
        ("durable batches are damaged", batch_starts(filesystem)[4])
    ]
    assert (log.log_end_offset, log.high_watermark) == (END_OFFSET, END_OFFSET)
    assert fetch(log, 0) == VALUES[:2]
    with pytest.raises(CorruptBatch):
        fetch(log, 4)
    assert fetch(log, 5) == VALUES[3:]


async def test_the_index_still_lists_damaged_share_state() -> None:
    filesystem = await written_log(SPARSE)
    spoil(filesystem, 2)
    log = await reopened(filesystem, SPARSE)
    assert control_offsets(log) == [2, 3]
    newest, damaged = log.share_records.newest(group_hash("group"))
    assert log.share_records.read(newest)[0] == 3
    with pytest.raises(StorageError, match="The share state at offset 2 is lost"):
        log.share_records.read(damaged)
    assert values_read(log) == VALUES


async def test_the_next_batch_behind_damage_is_found_by_the_index_after_another_start() -> None:
    filesystem = await written_log(SPARSE)
    start = batch_starts(filesystem)[BATCH_OF_OFFSET_4]
    del filesystem.files[f"{DIRECTORY}/{INDEX_CHECKSUMS}"]
    index = filesystem.files[LOG_PATH.replace(".log", ".index")]
    index += bytes(3) + b"\x05" + (start + 69).to_bytes(4, "big")  # the only entry, behind the damage
    filesystem.files[LOG_PATH][start + 8] = 0x7F
    await (await reopened(filesystem, SPARSE)).close()
    log = await reopened(filesystem, SPARSE)
    assert fetch(log, 5) == VALUES[3:]


async def test_the_last_batch_is_kept_too_and_its_offset_is_not_used_again() -> None:
    filesystem = await written_log()
    spoil(filesystem, 7)
    log = await reopened(filesystem)
    assert log.log_end_offset == END_OFFSET
    assert fetch(log, 0) == VALUES[:-1]
    with pytest.raises(CorruptBatch):
        fetch(log, 7)
    append(log, value=b"new")
    await log.close()
    again = await open_log(filesystem, config=INDEXED, recovery_point=END_OFFSET + 1)
    assert fetch(again, 8) == [(8, b"new")]


async def test_the_log_ends_where_the_file_has_lost_durable_bytes(
    log_lines: list[EventDict],
) -> None:
    filesystem = await written_log()
    del filesystem.files[LOG_PATH][-5:]
    log = await reopened(filesystem)
    assert log.log_end_offset == END_OFFSET - 1
    (line,) = [line for line in log_lines if line["log_level"] == "error"]
    assert line["event"] == "a segment is cut, and durable batches are lost"
    assert (line["log_end_offset"], line["recovery_point"]) == (7, 8)


async def test_a_torn_tail_is_logged_as_a_warning(log_lines: list[EventDict]) -> None:
    filesystem = await written_log()
    del filesystem.files[LOG_PATH][-5:]
    log = await open_log(filesystem, config=INDEXED)
    assert log.log_end_offset == END_OFFSET - 1
    (line,) = log_lines
    assert (line["log_level"], line["event"]) == ("warning", "a segment is cut behind its last whole batch")


async def old_segment(damaged: int) -> MemoryFileSystem:
    """A log with an old segment that has one damaged batch and no time index."""
    filesystem = await written_log(TWO_SEGMENTS)
    assert f"{DIRECTORY_OF_LOG}/{7:020d}.log" in filesystem.files
    filesystem.files[LOG_PATH][batch_starts(filesystem)[damaged] + 65] ^= 1
    del filesystem.files[LOG_PATH.replace(".log", ".timeindex")]
    return filesystem


DIRECTORY_OF_LOG = LOG_PATH.rpartition("/")[0]


async def test_indexes_of_a_damaged_segment_are_made_again_and_nothing_is_cut() -> None:
    filesystem = await old_segment(BATCH_OF_OFFSET_4)
    before = bytes(filesystem.files[LOG_PATH])
    log = await reopened(filesystem, TWO_SEGMENTS)
    assert bytes(filesystem.files[LOG_PATH]) == before
    assert control_offsets(log) == [2, 3]
    assert fetch(log, 5) == VALUES[3:5]
    with pytest.raises(CorruptBatch):
        fetch(log, 4)


async def test_a_damaged_segment_without_its_share_index_is_an_error() -> None:
    filesystem = await old_segment(2)
    del filesystem.files[LOG_PATH.replace(".log", ".shareindex")]
    with pytest.raises(RecordFormatError, match=r"There is damage at \d+, and no share index"):
        await reopened(filesystem, TWO_SEGMENTS)


async def test_appends_continue_behind_damage() -> None:
    filesystem = await written_log()
    spoil(filesystem, BATCH_OF_OFFSET_4)
    log = await reopened(filesystem)
    append(log, value=b"new")
    assert fetch(log, 5) == [*VALUES[3:], (8, b"new")]
