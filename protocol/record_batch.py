"""The record batch, version 2 (KIP-98): its header, its checksum, and the broker's check of a produced batch.

A batch is 61 bytes of header and the records, compressed or not:

    base_offset i64, batch_length i32, leader_epoch i32, magic i8, crc u32,          (21 bytes)
    attributes i16, last_offset_delta i32, base_timestamp i64, max_timestamp i64,    (under the CRC from here)
    producer_id i64, producer_epoch i16, base_sequence i32, record_count i32, records

`batch_length` counts the bytes after itself. The checksum does not cover the base offset and the leader
epoch, so a leader assigns them by rewriting 16 bytes (`patched_prefix`) without encoding the batch again.
Positions and sizes are in bytes; buffers are never copied. `records` reads the records, and
`record_validation` checks those of a produced batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer, RecordFormatError, zigzag_varint

MAGIC: Final = 2
HEADER_BYTES: Final = 61
LOG_OVERHEAD: Final = 12
"""The size of base offset and batch length, which `batch_length` does not count."""
CRC_START: Final = 21
"""The position in the batch of the first byte under the checksum."""

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
"""The base timestamp is the time from which the batch's tombstones may be removed (KIP-534); the records'
deltas are still relative to it."""

RECORD_COUNT_MAX: Final = 1_000_000
"""The most records in a produced batch, as in librdkafka (batch.num.messages); Kafka has no bound. A few
bytes may hold more records, and a search for one record reads all of them."""

_LEGACY_BODY_BYTES_MIN: Final = 14
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
BATCH_SPAN: Final = struct.Struct(">qi4xb4xhi8xqq")
"""The fields for a walk over a log, in loops where a `BatchHeader` is too slow: base_offset, batch_length,
magic, attributes, last_offset_delta, max_timestamp_ms, producer_id."""
_DATA_FIELDS: Final = struct.Struct(">21xh34xi")
"""The attributes and the record count."""
_PREFIX: Final = struct.Struct(">qii")
_UNCHECKED: Final = struct.Struct(">qiibI")
_CHECKED: Final = struct.Struct(">hiqqqhii")

KeyValue = tuple[bytes | None, bytes | None]


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The header's fields in the order of the wire."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch, header and records."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def log_append_time(self) -> bool:
        """Whether each record has the broker's time of the append, `max_timestamp_ms`."""
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove the batch's tombstones; None if it is not set yet."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def first_timestamp_ms(self) -> int:
        """The time of the first record, as far as the header tells; -1 without one.

        A batch with the broker's time of the append has one time for all records. A delete horizon takes the
        place of the first record's time: the largest time of a record stands for it then.
        """
        if self.attributes & (LOG_APPEND_TIME_FLAG | DELETE_HORIZON_FLAG):
            return self.max_timestamp_ms
        return self.base_timestamp_ms

    @property
    def compression(self) -> Compression:
        """The codec; RecordFormatError for the ids 5 to 7, which `validate_produced` refuses."""
        codec = self.attributes & COMPRESSION_MASK
        if codec > Compression.ZSTD:
            raise RecordFormatError(f"The batch at {self.base_offset} has the unknown codec {codec}.")
        return Compression(codec)


class ProducedBatch(NamedTuple):
    """A batch that passed `validate_produced`, at `position` in the produced bytes."""

    position: int
    header: BatchHeader


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; RecordFormatError if fewer than 61 bytes are left there."""
    if len(buffer) - position < HEADER_BYTES:
        raise RecordFormatError(f"A batch header at {position} is cut short at {len(buffer)}.")
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def has_data(buffer: Buffer, position: int) -> bool:
    """Whether the whole batch at `position` has records of data: it is neither a control batch nor emptied by
    compaction.
    """
    attributes, record_count = _DATA_FIELDS.unpack_from(buffer, position)
    return record_count > 0 and not attributes & CONTROL_FLAG


def iterate_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each complete batch.

    Ends before a batch that is cut short, as the last batch of a fetched slice or a torn log may be. Verifies
    no checksum. RecordFormatError for an impossible length, because the following batches cannot be found.
    """
    end = len(buffer)
    unpack_from, make = HEADER.unpack_from, BatchHeader._make
    position = 0
    while end - position >= HEADER_BYTES:
        header = make(unpack_from(buffer, position))
        next_position = position + LOG_OVERHEAD + header[1]
        if next_position > end:
            return
        if next_position - position < HEADER_BYTES:
            raise RecordFormatError(f"A batch at {position} states a length of {header.batch_length} bytes.")
        yield position, header
        position = next_position


_new_header, _new_produced = maker(BatchHeader), maker(ProducedBatch)


def is_checksum_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the complete batch at `position` has the CRC-32C of its header."""
    checked = memoryview(buffer)[position + CRC_START : position + LOG_OVERHEAD + header.batch_length]
    return int(crc32c(checked)) == header.crc


def validate_produced(
    records: Buffer,
    *,
    message_bytes_max: int,
    zstd_allowed: bool = True,
    transactional_allowed: bool = False,
) -> list[ProducedBatch]:
    """Checks the header of a partition's produced data, which is exactly one batch since Produce v3.

    `message_bytes_max` is the topic's max.message.bytes. `zstd_allowed` is false below Produce v7.
    `transactional_allowed` means that the producer's transaction is open. Raises ApiError with the code of
    Kafka 4.4.0, and checks in Kafka's order (ProduceRequest.validateRecords,
    UnifiedLog.analyzeAndValidateRecords, LogValidator). There are a few differences: bytes after the batch
    are refused instead of cut off, and so is log append time. More than RECORD_COUNT_MAX records are refused
    with MESSAGE_TOO_LARGE, which makes Java's producer split the batch. An unknown codec, for which Kafka
    fails with UNKNOWN_SERVER_ERROR, is refused with UNSUPPORTED_COMPRESSION_TYPE.
    """
    if len(records) < HEADER_BYTES:
        raise _why_not_one_batch(records)
    header = _new_header(HEADER.unpack_from(records))
    if header.magic != MAGIC or LOG_OVERHEAD + header.batch_length != len(records):
        raise _why_not_one_batch(records)
    if not zstd_allowed and header.attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise ApiError(ErrorCode.unsupported_compression_type, "Zstandard needs Produce version 7 or newer.")
    if header.base_offset != 0:
        raise _invalid(f"The batch's base offset is {header.base_offset}, not 0.")
    if len(records) > message_bytes_max:
        raise ApiError(
            ErrorCode.message_too_large,
            f"The batch has {len(records)} bytes; max.message.bytes is {message_bytes_max}.",
        )
    if crc32c(memoryview(records)[CRC_START:]) != header.crc:
        raise _corrupt("The batch's checksum doesn't match its bytes.")
    attributes = header.attributes
    if attributes & COMPRESSION_MASK > Compression.ZSTD:
        codec = attributes & COMPRESSION_MASK
        raise ApiError(ErrorCode.unsupported_compression_type, f"The compression codec {codec} is unknown.")
    count, delta = header.record_count, header.last_offset_delta
    if count <= 0 or delta + 1 != count:
        raise _invalid(f"The batch states {count} records and a last offset delta of {delta}.")
    if count > RECORD_COUNT_MAX:
        message = f"The batch states {count} records; more than {RECORD_COUNT_MAX} are too many for one."
        raise ApiError(ErrorCode.message_too_large, message)
    if attributes & CONTROL_FLAG:
        raise _invalid("Clients may not write control records.")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"Producer {header.producer_id} sent the sequence number {header.base_sequence}.")
    if attributes & TRANSACTIONAL_FLAG and not transactional_allowed:
        raise ApiError(
            ErrorCode.transactional_id_authorization_failed,
            "The batch belongs to no open transaction.",
        )
    if attributes & LOG_APPEND_TIME_FLAG:
        raise ApiError(ErrorCode.invalid_timestamp, "Only the broker may set log append time.")
    return [_new_produced((0, header))]


def _why_not_one_batch(records: Buffer) -> ApiError:
    missing = _invalid("There is no complete record batch.")
    if len(records) < LOG_OVERHEAD:
        return missing
    batch_length = int.from_bytes(records[_LENGTH_POSITION:LOG_OVERHEAD], "big", signed=True)
    if batch_length < _LEGACY_BODY_BYTES_MIN:
        return _corrupt(f"The batch states a length of {batch_length} bytes.")
    if len(records) <= _MAGIC_POSITION:
        return missing
    magic = records[_MAGIC_POSITION]
    if magic > MAGIC:
        return _corrupt(f"The magic {magic} is unknown.")
    if len(records) < LOG_OVERHEAD + batch_length:
        return missing
    if magic != MAGIC:
        return _invalid(f"Message format version {magic} isn't accepted, only version {MAGIC}.")
    if LOG_OVERHEAD + batch_length < HEADER_BYTES:
        return _corrupt(f"The batch states a length of {batch_length} bytes.")
    return _invalid("There is more than one record batch.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_record, message)


def _corrupt(message: str) -> ApiError:
    return ApiError(ErrorCode.corrupt_message, message)


def patched_prefix(header: BatchHeader, base_offset: int, leader_epoch: int) -> bytes:
    """The batch's first 16 bytes with the values that its leader assigns; the other bytes do not change."""
    return _PREFIX.pack(base_offset, header.batch_length, leader_epoch)


def log_append_time_header(
    records: Buffer, batch: ProducedBatch, base_offset: int, leader_epoch: int, append_time_ms: int
) -> bytes:
    """All 61 bytes of the header for message.timestamp.type=LogAppendTime.

    The checksum covers the time, so it is computed again; the records do not change.
    """
    position, header = batch
    checked = _CHECKED.pack(
        header.attributes | LOG_APPEND_TIME_FLAG,
        header.last_offset_delta,
        header.base_timestamp_ms,
        append_time_ms,
        *header[9:],
    )
    body = memoryview(records)[position + HEADER_BYTES : position + header.size_bytes]
    crc = crc32c(body, crc32c(checked))
    return _UNCHECKED.pack(base_offset, header.batch_length, leader_epoch, MAGIC, crc) + checked


def build_batch(
    base_offset: int,
    records: Sequence[KeyValue],
    *,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """An uncompressed batch that the broker creates: one time for all records, no record headers."""
    encoded = [encode_record(delta, 0, key, value) for delta, (key, value) in enumerate(records)]
    return seal_batch(
        b"".join(encoded),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=len(encoded) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(encoded),
    )


def seal_batch(
    body: bytes,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes:
    """The batch around `body`, whose records are compressed according to the attributes."""
    checked = (
        _CHECKED.pack(
            attributes,
            last_offset_delta,
            base_timestamp_ms,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
        + body
    )
    batch_length = CRC_START - LOG_OVERHEAD + len(checked)
    return _UNCHECKED.pack(base_offset, batch_length, leader_epoch, MAGIC, crc32c(checked)) + checked


def reseal_batch(header: BatchHeader, body: bytes) -> bytes:
    """The batch of `header` around another body, with a new length and checksum."""
    return seal_batch(
        body,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count,
    )


def encode_record(
    offset_delta: int,
    timestamp_delta_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: bytes = b"\x00",
) -> bytes:
    """One record of a batch, with its length in front; `headers` are encoded, with their count first."""
    body = b"".join(
        (
            b"\x00",  # attributes of a record: none are defined
            zigzag_varint(timestamp_delta_ms),
            zigzag_varint(offset_delta),
            _nullable(key),
            _nullable(value),
            headers,
        )
    )
    return zigzag_varint(len(body)) + body


def _nullable(data: bytes | None) -> bytes:
    return b"\x01" if data is None else zigzag_varint(len(data)) + data
