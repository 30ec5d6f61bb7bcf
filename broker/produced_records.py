"""What a client produced to one partition, as it is to be appended: checked, and in the topic's codec.

Most batches pass as they came. Only what a topic asks for beyond Kafka's defaults has its records looked at:
keys in a compacted one (cleanup.policy), times that may not lie too far back
(message.timestamp.before.max.ms), and another codec than the producer's (compression.type), for which there
is a thread (`repacking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ApiError
from barnabas.protocol.recompression import StoredCompression, recompress
from barnabas.protocol.record_batch import Compression, ProducedBatch, validate_produced
from barnabas.protocol.record_keys import check_keys
from barnabas.protocol.record_times import TimeBounds, check_times
from barnabas.protocol.varint import Buffer
from barnabas.storage.log_config import LogConfig, TimestampType

_AS_PRODUCED: Final = "producer"
_LONG_MAX: Final = 2**63 - 1


def prepare_produced(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    *,
    zstd_allowed: bool,
    transactional_allowed: bool = False,
) -> tuple[Buffer, Sequence[ProducedBatch]]:
    """The bytes to append, and the batches in them; raises ApiError for what the topic with the settings
    `config` doesn't take. `now_ms` is wall time; `zstd_allowed` and `transactional_allowed` are those of
    `validate_produced`.
    """
    batches: Sequence[ProducedBatch] = validate_produced(
        records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=zstd_allowed,
        transactional_allowed=transactional_allowed,
    )
    if config.compact_enabled:
        check_keys(records, batches)
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        _check_times(records, batches, config, now_ms)
    if is_repacked(config):
        bytes_max = config.max_message_bytes
        records, batches = recompress(
            records, batches, _stored_compression(config), message_bytes_max=bytes_max
        )
    return records, batches


def is_repacked(config: LogConfig) -> bool:
    """Whether the topic has a codec of its own."""
    return config.compression_type != _AS_PRODUCED


def repack_produced(records: Buffer, config: LogConfig, *, zstd_allowed: bool) -> Buffer:
    """The records in the topic's codec; or as they came if they are to be refused, or if the codec is one
    that the client's version must not send, which `prepare_produced` packs then.
    """
    stored = _stored_compression(config)
    if stored.codec is Compression.ZSTD and not zstd_allowed:
        return records
    bytes_max = config.max_message_bytes
    try:
        batches = validate_produced(
            records, message_bytes_max=bytes_max, zstd_allowed=zstd_allowed, transactional_allowed=True
        )
        return recompress(records, batches, stored, message_bytes_max=bytes_max)[0]
    except ApiError:
        return records


def _check_times(records: Buffer, batches: Sequence[ProducedBatch], config: LogConfig, now_ms: int) -> None:
    before_max_ms = config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if before_max_ms != _LONG_MAX:
        check_times(records, batches, TimeBounds(now_ms - before_max_ms, latest_ms))
    elif batches[0].header.max_timestamp_ms > latest_ms:  # nearly never: the bounds are not even made
        check_times(records, batches, TimeBounds(None, latest_ms))


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
