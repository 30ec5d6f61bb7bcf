"""The settings of one log, with Kafka's topic config names and defaults, and those of the whole storage
layer.

A topic's configs arrive as strings, in their stored form. Their values were checked when they were set. Names
that no log needs are ignored here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any
from zlib import crc32

AS_PRODUCED = "producer"
"""The compression.type of topics that keep each batch's own codec."""
NO_TIME_BOUND = 2**63 - 1
"""The message.timestamp.before.max.ms of topics that accept records of any age."""

_DAY_MS = 24 * 60 * 60 * 1000


class TimestampType(Enum):
    """message.timestamp.type: the source of a record's timestamp."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class FlushPolicy(Enum):
    """log.flush: when an fsync happens. It decides the promise of a reply."""

    INTERVAL = "interval"
    """By time and size, in the background. Data survives the end of the process, but not a loss of power."""
    ALWAYS = "always"
    """Before each reply, shared by all waiting appends. Data survives a loss of power."""
    NEVER = "never"
    """When a segment is rolled or the log is closed, as in Apache Kafka by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One log's settings. Sizes in bytes, times in ms; -1 means no limit where Kafka says so."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    delete_enabled: bool = True
    compact_enabled: bool = False
    max_message_bytes: int = 1048588
    max_decompressed_message_bytes: int = 2**31 - 9
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = NO_TIME_BOUND
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    compression_type: str = AS_PRODUCED
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 2**63 - 1
    delete_retention_ms: int = _DAY_MS
    segment_jitter_ms: int = 0
    """At most this much is subtracted from the rolling age of a segment, so that segments created together
    are not closed together."""
    file_delete_delay_ms: int = 0
    """The time for which the files of removed segments stay on the disk; 60,000 for Kafka's topics."""
    flush_messages: int = 2**63 - 1
    """An append that makes this number of offsets not durable waits for an fsync; 1 is log.flush=always."""
    outlives_full_disk: bool = False
    """Whether an append that finds no room fails alone and leaves the log online. For the metadata log,
    without which the broker would have to stop."""
    checks_indexes: bool = False
    """Whether an opening compares all indexes with their checksums. For logs that the broker reads as a whole
    at its start, which would fail if an index were found to be damaged only then."""
    flush_ms: int | None = None
    """The interval at which a changed log is flushed; with None the broker's `log.flush` decides."""

    def roll_ms(self, segment_name: str) -> int:
        """The age at which a segment is closed. In a compacted log it is max.compaction.lag.ms at most,
        because the active segment is not compacted. The jitter depends on the segment's name only.
        """
        segment_ms = self.segment_ms
        if self.segment_jitter_ms:
            segment_ms -= crc32(segment_name.encode()) % min(self.segment_jitter_ms, segment_ms)
        return min(segment_ms, self.max_compaction_lag_ms) if self.compact_enabled else segment_ms

    @classmethod
    def from_topic_configs(cls, configs: Mapping[str, str]) -> LogConfig:
        """From a mapping of Kafka's names to strings; a missing name has its default."""
        values: dict[str, Any] = {}
        for name, text in configs.items():
            if name == "cleanup.policy":
                policies = {policy.strip().lower() for policy in text.split(",")}
                values["delete_enabled"] = "delete" in policies
                values["compact_enabled"] = "compact" in policies
            elif name in _READERS:
                field_name, read = _READERS[name]
                values[field_name] = read(text)
        return cls(**values)


def _readers() -> dict[str, tuple[str, Callable[[str], object]]]:
    plain = {field.name for field in fields(LogConfig)} - {
        "compression_type",
        "delete_enabled",
        "compact_enabled",
        "message_timestamp_type",
        "message_timestamp_before_max_ms",
        "message_timestamp_after_max_ms",
        "min_cleanable_dirty_ratio",
    }
    readers: dict[str, tuple[str, Callable[[str], object]]] = {
        name.replace("_", "."): (name, int) for name in plain
    }
    readers["compression.type"] = ("compression_type", str)
    readers["message.timestamp.type"] = ("message_timestamp_type", TimestampType)
    readers["message.timestamp.before.max.ms"] = ("message_timestamp_before_max_ms", int)
    readers["message.timestamp.after.max.ms"] = ("message_timestamp_after_max_ms", int)
    readers["min.cleanable.dirty.ratio"] = ("min_cleanable_dirty_ratio", float)
    return readers


_READERS = _readers()


@dataclass(slots=True, kw_only=True)
class StorageConfig:
    """The settings of all logs of a data directory, which share one object; some change while it is in use.

    A name with dots in a comment is Kafka's setting; the others are Barnabas's.
    """

    flush: FlushPolicy = FlushPolicy.INTERVAL
    """log.flush (Barnabas's)."""
    flush_interval_ms: int = 1000
    """log.flush.interval.ms."""
    flush_bytes: int = 64 * 1024 * 1024
    """A log with this number of unflushed bytes is flushed before the interval is over."""
    recovery_point_interval_ms: int = 60_000
    """log.flush.offset.checkpoint.interval.ms."""
    recovery_scan_bytes_max: int = 1024 * 1024
    """A recovery point with this number of bytes behind it moves before that interval is over."""
    flush_concurrency_max: int = 8
    """Logs that are flushed at the same time."""
    retention_check_interval_ms: int = 5 * 60 * 1000
    """log.retention.check.interval.ms."""
    producer_id_expiration_ms: int = _DAY_MS
    """producer.id.expiration.ms."""
    open_files_max: int = 1024
    """Segments that keep their file open and their indexes in memory; the least used one is closed."""
    append_inline_bytes_max: int = 1024 * 1024
    """A larger write runs in a thread, so that it does not delay the loop. This size takes 0.2 ms to copy; in
    a thread, beside a busy loop, it takes longer and costs twice the CPU time."""
    append_group_bytes_max: int = 8 * 1024 * 1024
    """The most bytes of one write, except a single larger append."""
    append_queue_bytes_max: int = 64 * 1024 * 1024
    """When more bytes wait for the disk, further appends to that log fail with `AppendQueueFull`."""
    append_slow_ms: int = 10
    """After a write that took longer, the next ones run in a thread until one is faster again."""
    reopen_backoff_ms: int = 1000
    """The pause before a log that went offline is opened again."""
    cleaner_enabled: bool = True
    """log.cleaner.enable."""
    cleaner_backoff_ms: int = 15_000
    """log.cleaner.backoff.ms: the pause of the cleaner when no log is worth cleaning."""
    cleaner_dedupe_buffer_bytes: int = 128 * 1024 * 1024
    """log.cleaner.dedupe.buffer.size: the keys of one pass of a compaction."""
    cleaner_slice_bytes: int = 256 * 1024
    """The cleaner reads this much in one slice, or one larger batch: half of log.cleaner.io.buffer.size,
    whose other half is for writes."""
    cleaner_io_bytes_per_second: float = math.inf
    """log.cleaner.io.max.bytes.per.second: bytes read and written."""
