"""Logs to clean, and the properties that cleaning must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.protocol.record_batch import BatchHeader, Compression, iterate_headers
from barnabas.protocol.records import Record, encode_records, iterate_records
from barnabas.storage.cleaner.log_cleaning import CleanedLog, CleaningPlan
from barnabas.storage.log.appended import Append
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig
from tests.storage.log_building import DIRECTORY, NOW_MS, validated
from tests.storage.memory_filesystem import MemoryFileSystem

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=200)
"""Segments of a few batches."""
COMPACTED = LogConfig(
    segment_bytes=2_000,
    index_interval_bytes=200,
    compact_enabled=True,
    delete_enabled=False,
    min_cleanable_dirty_ratio=0.01,
)


class Kept(NamedTuple):
    """The properties of a log that cleaning must not change."""

    values: Sequence[tuple[int, bytes | None]]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    data_ranges: Sequence[tuple[int, int]]
    share_checkpoint_offsets: dict[str, int]


def keyed(key: bytes | None, value: bytes | None, *, timestamp_ms: int = NOW_MS, **options: Any) -> bytes:
    """A batch of one record with a key, in the form in which a client sends it."""
    return keyed_batch([(key, value)], timestamp_ms=timestamp_ms, **options)


def keyed_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp_ms: int = NOW_MS,
    compression: Compression = Compression.NONE,
    **options: Any,
) -> bytes:
    """A batch of records a millisecond apart, each with a header."""
    return encode_records(
        [
            Record(offset, timestamp_ms + offset, key, value, (("n", str(offset).encode()),))
            for offset, (key, value) in enumerate(records)
        ],
        compression=compression,
        **options,
    )


def append_batch(log: PartitionLog, batch: bytes) -> Append:
    return log.append_produced(batch, validated(batch), NOW_MS)


def close_segment(log: PartitionLog) -> None:
    """Closes the active segment, unless it is empty."""
    config = log.config
    log.config = replace(config, segment_ms=-(10**9))
    log.roll_if_due(NOW_MS)
    log.config = config


async def roll(log: PartitionLog) -> None:
    """Closes the active segment and makes all durable, so that everything before may be cleaned."""
    close_segment(log)
    await log.flush()


async def clean(log: PartitionLog, *, cleaned_offset: int = 0, now_ms: int = NOW_MS) -> CleanedLog | None:
    """Cleans all segments that may be cleaned, even if it is not worth it."""
    plan = await log.plan_cleaning(cleaned_offset, now_ms)
    return await log.clean(everything(plan), now_ms)


def everything(plan: CleaningPlan) -> CleaningPlan:
    """The plan with all of it due."""
    dirty = None if plan.dirty is None else plan.dirty._replace(is_due=True)
    worth = [one.cleanable > 0 for one in plan.state_bytes]
    return plan._replace(dirty=dirty, worth=worth)


def batches_on_disk(filesystem: MemoryFileSystem) -> list[BatchHeader]:
    """The headers of all batches in the log's files."""
    paths = sorted(path for path in filesystem.files if path.endswith(".log") and path.startswith(DIRECTORY))
    return [header for path in paths for _, header in iterate_headers(bytes(filesystem.files[path]))]


def records_read(log: PartitionLog, offset: int = 0) -> list[Record]:
    """Every record that a consumer gets, checksums verified."""
    records: list[Record] = []
    while buffers := log.read(offset, bytes_max=2**30).buffers:
        data = b"".join(buffers)
        for position, header in iterate_headers(data):
            records += iterate_records(data, position)
            offset = header.last_offset + 1
    return records


def kept_of(log: PartitionLog) -> Kept:
    return Kept(
        [(record.offset, record.value) for record in records_read(log, log.log_start_offset)],
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.control_runs.data_ranges(log.log_start_offset, log.log_end_offset - 1),
        dict(log.share_records.checkpoint_offsets),
    )


def latest_by_key(records: Sequence[Record]) -> dict[bytes | None, bytes | None]:
    """The last value of each key, without tombstones."""
    return {record.key: record.value for record in records}
