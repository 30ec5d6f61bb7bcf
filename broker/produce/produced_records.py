"""Checks the batches that a client produces to one partition, and converts them to the topic's codec.

All records of a batch are checked (Kafka's `LogValidator`): they must be complete and well-formed, and obey
the topic's rules for keys (cleanup.policy) and times (message.timestamp.before.max.ms and
message.timestamp.after.max.ms). As in Kafka, a header with another maximum timestamp than its records is
corrected. A topic may have another codec than the producer (compression.type).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.produce.inline_budget import InlineBudget
from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, LargerThanBound, unpack
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.recompression import StoredCompression, recompress
from barnabas.protocol.record_batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    BatchHeader,
    Compression,
    ProducedBatch,
    read_header,
    reseal_batch,
    validate_produced,
)
from barnabas.protocol.record_validation import described, refuse_records
from barnabas.protocol.record_walk import RecordRules, RecordsCheck, check_in_steps, check_records
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.runtime.stepwise import Steps
from barnabas.storage.log_config import AS_PRODUCED, LogConfig, TimestampType

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class Prepared(NamedTuple):
    """The batches to append."""

    records: Buffer
    batches: Sequence[ProducedBatch]


_new_prepared, _new_rules = maker(Prepared), maker(RecordRules)


def prepare(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    budget: InlineBudget,
    zstd_allowed: bool,
    transactional_allowed: bool,
) -> Prepared | Steps[Prepared]:
    """The batches to append, or the steps that prepare them in a thread if that exceeds `budget`.

    `config` is the topic's; `now_ms` is wall time. Raises ApiError for records that the topic refuses; the
    steps raise it, too. The flags are those of `validate_produced`.
    """
    batches = validate_produced(
        records,
        message_bytes_max=config.max_message_bytes,
        zstd_allowed=zstd_allowed,
        transactional_allowed=transactional_allowed,
    )
    header = batches[0].header
    rules = _record_rules(config, header, now_ms)
    body: Buffer | None = None
    if config.compression_type == AS_PRODUCED or not _is_repacked(config, header):
        if header.attributes & COMPRESSION_MASK:
            body = _unpacked_within(budget, records, header)
        elif budget.take(header.record_count, len(records) - HEADER_BYTES):
            body = memoryview(records)[HEADER_BYTES:]
    if body is None:
        return _prepare_in_steps(records, batches, config, rules)
    check = check_records(body, header.record_count, header.base_timestamp_ms, rules)
    if check.max_timestamp_ms == header.max_timestamp_ms and not (check.fault or check.rejected_count):
        return _new_prepared((records, batches))  # nearly always
    return _checked(records, batches, check, rules)


def _record_rules(config: LogConfig, header: BatchHeader, now_ms: int) -> RecordRules:
    """The topic's rules for the records of one batch."""
    times = None
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        latest_ms = now_ms + config.message_timestamp_after_max_ms
        times = now_ms - config.message_timestamp_before_max_ms, min(latest_ms, _INT64_MAX)
    is_compressed = header.attributes & COMPRESSION_MASK
    bytes_max = config.max_decompressed_message_bytes if is_compressed else _INT32_MAX
    return _new_rules((config.compact_enabled, times, bytes_max))


def _prepare_in_steps(
    records: Buffer, batches: Sequence[ProducedBatch], config: LogConfig, rules: RecordRules
) -> Steps[Prepared]:
    header = batches[0].header
    body = _body(records, header, DECOMPRESSED_BYTES_MAX)
    check = yield from check_in_steps(body, header.record_count, header.base_timestamp_ms, rules)
    if not _is_repacked(config, header):
        return _checked(records, batches, check, rules)
    refuse_records(header, check, rules)
    batch = recompress(
        body,
        _with_latest_time(header, check, rules),
        _stored_compression(config),
        message_bytes_max=config.max_message_bytes,
    )
    return _prepared(batch)


def _checked(
    records: Buffer, batches: Sequence[ProducedBatch], check: RecordsCheck, rules: RecordRules
) -> Prepared:
    header = batches[0].header
    refuse_records(header, check, rules)
    if check.max_timestamp_ms == header.max_timestamp_ms or rules.times is None:
        return Prepared(records, batches)
    body = bytes(memoryview(records)[HEADER_BYTES:])
    return _prepared(reseal_batch(_with_latest_time(header, check, rules), body))


def _unpacked_within(budget: InlineBudget, records: Buffer, header: BatchHeader) -> Buffer | None:
    """The records, decompressed; None if that exceeds the budget."""
    if not budget.take_packed(header.record_count, len(records) - HEADER_BYTES):
        return None
    try:
        body = _body(records, header, budget.unpacked_bytes_max)
    except LargerThanBound:
        return None
    budget.count_unpacked(len(body))
    return body


def _body(records: Buffer, header: BatchHeader, bytes_max: int) -> Buffer:
    """The records, decompressed. More than `bytes_max` raises ApiError if that is DECOMPRESSED_BYTES_MAX,
    else LargerThanBound. Damaged records raise ApiError.
    """
    try:
        return unpack(header.compression, memoryview(records)[HEADER_BYTES:], bytes_max=bytes_max)
    except LargerThanBound as error:
        if bytes_max < DECOMPRESSED_BYTES_MAX:
            raise
        message = f"{described(header)} decompresses to more than {bytes_max} bytes."
        raise ApiError(ErrorCode.message_too_large, message) from error
    except RecordFormatError as error:
        message = f"{described(header)} cannot be decompressed: {error}"
        raise ApiError(ErrorCode.invalid_record, message) from error


def _with_latest_time(header: BatchHeader, check: RecordsCheck, rules: RecordRules) -> BatchHeader:
    return header if rules.times is None else header._replace(max_timestamp_ms=check.max_timestamp_ms)


def _is_repacked(config: LogConfig, header: BatchHeader) -> bool:
    """Whether the topic's codec differs from the producer's."""
    return (
        config.compression_type != AS_PRODUCED and _stored_compression(config).codec is not header.compression
    )


def _prepared(records: bytes) -> Prepared:
    return Prepared(records, [ProducedBatch(0, read_header(records))])


def _stored_compression(config: LogConfig) -> StoredCompression:
    """The topic's codec."""
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
