"""What a client produced to one partition, as it is to be appended: checked, and in the topic's codec.

Most batches pass as they came. Only what a topic asks for beyond Kafka's defaults has its records looked
into: keys in a compacted one (cleanup.policy), times that may not lie too far back
(message.timestamp.before.max.ms), and another codec than the producer's (compression.type). Times too far
ahead are seen in a batch's header; which records have them is looked for to be told. Where that takes long,
a thread does it (`preparation`).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.batch_body import small_body
from barnabas.protocol.recompression import StoredCompression, recompress
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    Compression,
    ProducedBatch,
    read_header,
    validate_produced,
)
from barnabas.protocol.record_keys import check_keys
from barnabas.protocol.record_times import TimeBounds, check_times
from barnabas.protocol.varint import Buffer
from barnabas.storage.log_config import AS_PRODUCED, NO_TIME_BOUND, LogConfig, TimestampType
from barnabas.storage.stepwise import Steps, do_at_once

Prepared = tuple[Buffer, Sequence[ProducedBatch]]
"""The bytes to append, and the batches in them."""


class TakesLong(Exception):  # noqa: N818  named as the condition
    """A batch is refused, and which of its records are at fault takes long to find out."""

    def __init__(self, steps: Steps[Prepared]) -> None:
        super().__init__()
        self.steps = steps
        """Ends in the ApiError to be answered with."""


def prepare_produced(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    *,
    zstd_allowed: bool,
    transactional_allowed: bool = False,
) -> Prepared:
    """What is to be appended; raises ApiError for what the topic with the settings `config` doesn't take, or
    TakesLong.

    `now_ms` is wall time; `zstd_allowed` and `transactional_allowed` are those of `validate_produced`. What
    the topic wants looked into is so here and now: many records are for `prepare_in_steps`.
    """
    batches = validate_produced(
        records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=zstd_allowed,
        transactional_allowed=transactional_allowed,
    )
    header = batches[0].header
    is_late = (
        header.max_timestamp_ms > now_ms + config.message_timestamp_after_max_ms
        and config.message_timestamp_type is TimestampType.CREATE_TIME
    )
    if is_late and small_body(records, header) is None:
        raise TakesLong(_looked_into(records, batches, config, now_ms))
    if is_late or config.looks_into_records:
        return do_at_once(_looked_into(records, batches, config, now_ms))
    return records, batches


def prepare_in_steps(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    *,
    zstd_allowed: bool,
    transactional_allowed: bool,
) -> Steps[Prepared]:
    """As `prepare_produced`, for a thread; raises ApiError."""
    batches = validate_produced(
        records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=zstd_allowed,
        transactional_allowed=transactional_allowed,
    )
    return (yield from _looked_into(records, batches, config, now_ms))


def is_repacked(config: LogConfig) -> bool:
    """Whether the topic has a codec of its own."""
    return config.compression_type != AS_PRODUCED


def small_record_count(records: Buffer) -> int | None:
    """How many records a look takes in, if they are few; None if they may be many.

    A batch without a whole header is refused without a look.
    """
    if len(records) < HEADER_BYTES:
        return 0
    header = read_header(records)
    return None if small_body(records, header) is None else max(header.record_count, 0)


def _looked_into(
    records: Buffer, batches: Sequence[ProducedBatch], config: LogConfig, now_ms: int
) -> Steps[Prepared]:
    if config.compact_enabled:
        yield from check_keys(records, batches)
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        yield from check_times(records, batches, _time_bounds(config, now_ms))
    if is_repacked(config):
        bytes_max = config.max_message_bytes
        records, batches = recompress(
            records, batches, _stored_compression(config), message_bytes_max=bytes_max
        )
    return records, batches


def _time_bounds(config: LogConfig, now_ms: int) -> TimeBounds:
    before_max_ms = config.message_timestamp_before_max_ms
    earliest_ms = None if before_max_ms == NO_TIME_BOUND else now_ms - before_max_ms
    return TimeBounds(earliest_ms, now_ms + config.message_timestamp_after_max_ms)


def _stored_compression(config: LogConfig) -> StoredCompression:
    match config.compression_type:
        case "gzip":
            level = config.compression_gzip_level
            return StoredCompression(Compression.GZIP, None if level < 0 else level)
        case "lz4":
            return StoredCompression(Compression.LZ4, config.compression_lz4_level)
        case "zstd":
            return StoredCompression(Compression.ZSTD, config.compression_zstd_level)
        case "snappy":
            return StoredCompression(Compression.SNAPPY)
        case _:
            return StoredCompression(Compression.NONE)
