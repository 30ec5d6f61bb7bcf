"""What a client produced to one partition, as it is to be appended: checked, and in the topic's codec.

All records of a batch are checked (LogValidator of Apache Kafka): that they are there and well-formed, and
that they keep the topic's rules for keys (cleanup.policy) and times (message.timestamp.before.max.ms and
message.timestamp.after.max.ms). As in Kafka, a header that states another latest time than its records is
mended. A topic may ask for another codec than the producer's (compression.type).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, LargerThanBound, unpack
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.recompression import StoredCompression, recompress
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    ProducedBatch,
    read_header,
    reseal_batch,
    validate_produced,
)
from barnabas.protocol.record_validation import described, refuse_records
from barnabas.protocol.record_walk import RecordRules, check_in_steps
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.storage.log_config import AS_PRODUCED, LogConfig, TimestampType
from barnabas.storage.stepwise import Steps

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class Prepared(NamedTuple):
    """What is to be appended."""

    records: Buffer
    batches: Sequence[ProducedBatch]


def prepare_in_steps(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    budget: InlineBudget,
    *,
    zstd_allowed: bool,
    transactional_allowed: bool,
) -> Steps[Prepared]:
    """What is to be appended; raises ApiError for what a topic with the settings `config` doesn't take.

    The first step stays within `budget`, for the loop's thread. All others are for a thread beside it.
    `now_ms` is wall time; `zstd_allowed` and `transactional_allowed` are those of `validate_produced`.
    """
    batches = validate_produced(
        records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=zstd_allowed,
        transactional_allowed=transactional_allowed,
    )
    header = batches[0].header
    rules = _rules(config, now_ms, is_compressed=header.compression is not Compression.NONE)
    body = yield from _body(records, header, budget)
    check = yield from check_in_steps(body, header.record_count, header.base_timestamp_ms, rules)
    refuse_records(header, check, rules)
    mended = header
    if header.max_timestamp_ms != check.max_timestamp_ms and rules.times is not None:
        mended = header._replace(max_timestamp_ms=check.max_timestamp_ms)
    stored = _stored_compression(config)
    if stored is not None and stored.codec is not header.compression:
        yield
        return _prepared(recompress(body, mended, stored, message_bytes_max=config.max_message_bytes))
    if mended is not header:
        return _prepared(reseal_batch(mended, bytes(memoryview(records)[HEADER_BYTES:])))
    return Prepared(records, batches)


def _body(records: Buffer, header: BatchHeader, budget: InlineBudget) -> Steps[Buffer]:
    """The records, uncompressed."""
    packed = memoryview(records)[HEADER_BYTES:]
    codec = header.compression
    if codec is Compression.NONE:
        if not budget.take(header.record_count, len(packed)):
            yield
        return packed
    try:
        if budget.take_packed(header.record_count, len(packed)):
            try:
                body = unpack(codec, packed, bytes_max=budget.unpacked_bytes_max)
            except LargerThanBound:
                pass
            else:
                budget.count_unpacked(len(body))
                return body
        yield
        return unpack(codec, packed)
    except LargerThanBound as error:
        message = f"{described(header)} unpacks to more than {DECOMPRESSED_BYTES_MAX} bytes."
        raise ApiError(ErrorCode.message_too_large, message) from error
    except RecordFormatError as error:
        message = f"{described(header)} cannot be unpacked: {error}"
        raise ApiError(ErrorCode.invalid_record, message) from error


def _rules(config: LogConfig, now_ms: int, *, is_compressed: bool) -> RecordRules:
    times = None
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        latest_ms = min(now_ms + config.message_timestamp_after_max_ms, _INT64_MAX)
        times = (now_ms - config.message_timestamp_before_max_ms, latest_ms)
    record_bytes_max = config.max_decompressed_message_bytes if is_compressed else _INT32_MAX
    return RecordRules(config.compact_enabled, times, record_bytes_max)


def _prepared(records: bytes) -> Prepared:
    return Prepared(records, [ProducedBatch(0, read_header(records))])


def _stored_compression(config: LogConfig) -> StoredCompression | None:
    """The codec that the topic asks for; None if each batch keeps its own."""
    match config.compression_type:
        case _ if config.compression_type == AS_PRODUCED:
            return None
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
