"""The records inside a record batch, version 2 (KIP-98, headers KIP-82): encodes and decodes with all codecs.

For internal topics, snapshots, clients, tools and tests. `record_walk` describes the format, and also serves
readers that do not need whole records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, compress, decompress
from barnabas.protocol.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    encode_record,
    is_checksum_valid,
    read_header,
    seal_batch,
)
from barnabas.protocol.record_walk import RecordSpan, record_spans
from barnabas.protocol.record_walk.cursor import BytesCursor
from barnabas.protocol.varint import Buffer, RecordFormatError, zigzag_varint

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """One record with its absolute offset and time."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def encode_records(
    records: Sequence[Record],
    *,
    compression: Compression = Compression.NONE,
    leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One batch of `records`, at least one, by ascending offset; `attributes` must not contain the codec."""
    base = records[0]
    body = b"".join(
        encode_record(
            record.offset - base.offset,
            record.timestamp_ms - base.timestamp_ms,
            record.key,
            record.value,
            encode_headers(record.headers),
        )
        for record in records
    )
    return seal_batch(
        compress(compression, body),
        base_offset=base.offset,
        leader_epoch=leader_epoch,
        attributes=attributes | compression,
        last_offset_delta=records[-1].offset - base.offset,
        base_timestamp_ms=base.timestamp_ms,
        max_timestamp_ms=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )


def encode_headers(headers: Sequence[Header]) -> bytes:
    """The headers of a record, with their count first."""
    encoded = [zigzag_varint(len(headers))]
    for name, value in headers:
        data = name.encode()
        encoded += (zigzag_varint(len(data)), data)
        encoded += (zigzag_varint(-1),) if value is None else (zigzag_varint(len(value)), value)
    return b"".join(encoded)


RecordFields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""The fields of a `Record` in their order."""


def iterate_records(
    batch: Buffer, position: int = 0, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of the batch at `position`, at most as many as its header states.

    RecordFormatError if the batch is cut short or its checksum is wrong, and at a record that is malformed.
    """
    fields = iterate_fields(batch, position, decompressed_bytes_max=decompressed_bytes_max)
    return map(Record._make, fields)


def iterate_fields(
    batch: Buffer, position: int = 0, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[RecordFields]:
    """Like `iterate_records`, for readers that make another object of each record."""
    header = read_header(batch, position)
    if header.size_bytes > len(batch) - position or header.size_bytes < HEADER_BYTES:
        raise RecordFormatError(
            f"The batch at {position} states {header.size_bytes} bytes; the data has {len(batch)}."
        )
    if not is_checksum_valid(batch, position, header):
        raise RecordFormatError(f"The checksum of the batch at {position} does not match.")
    body = memoryview(batch)[position + HEADER_BYTES : position + header.size_bytes]
    return _iterate_body(header, decompress(header.compression, body, bytes_max=decompressed_bytes_max))


def _iterate_body(header: BatchHeader, body: bytes) -> Iterator[RecordFields]:
    base_offset, base_timestamp_ms = header.base_offset, header.base_timestamp_ms
    append_time_ms = header.max_timestamp_ms if header.log_append_time else None
    # Spans are taken apart, because reading their fields by name is half of the time.
    for _, _, _, end, timestamp_delta_ms, offset_delta, key, value_start, headers in record_spans(
        body, header.record_count
    ):
        yield (
            base_offset + offset_delta,
            base_timestamp_ms + timestamp_delta_ms if append_time_ms is None else append_time_ms,
            key,
            body[value_start:headers] if value_start >= 0 else None,
            _headers(body, headers, end) if body[headers] else (),
        )


def record_of_span(header: BatchHeader, body: bytes, span: RecordSpan) -> Record:
    """The record at one of the `record_spans` of the batch's body; RecordFormatError for a malformed name."""
    create_time_ms = header.base_timestamp_ms + span.timestamp_delta_ms
    return Record(
        header.base_offset + span.offset_delta,
        header.max_timestamp_ms if header.log_append_time else create_time_ms,
        span.key,
        body[span.value_start : span.headers] if span.has_value else None,
        _headers(body, span.headers, span.end),
    )


def _headers(body: bytes, start: int, end: int) -> tuple[Header, ...]:
    pairs = BytesCursor(body, start, end).headers()
    return tuple((_header_name(name), value) for name, value in pairs)


def _header_name(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise RecordFormatError("A record header's name isn't UTF-8.") from error
