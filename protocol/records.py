"""The records inside a record batch, version 2 (KIP-98, headers KIP-82): encoding and iterating, all codecs.

For internal topics, snapshots, tools and tests. What clients produce and fetch passes by as whole batches:
those are checked by `record_batch`, never opened. A record on the wire, lengths and deltas as zigzag varints
and -1 for null:

    length, attributes i8 = 0, timestamp_delta, offset_delta, key length and key, value length and value,
    header count, then for each header: length and name, length and value
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
from barnabas.protocol.varint import Buffer, RecordFormatError, read_zigzag_varint, zigzag_varint

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
    """One batch of `records`, at least one, by ascending offset; `attributes` are those besides the codec."""
    base = records[0]
    body = b"".join(
        encode_record(
            record.offset - base.offset,
            record.timestamp_ms - base.timestamp_ms,
            record.key,
            record.value,
            _encode_headers(record.headers),
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


def _encode_headers(headers: Sequence[Header]) -> bytes:
    encoded = [zigzag_varint(len(headers))]
    for name, value in headers:
        data = name.encode()
        encoded += (zigzag_varint(len(data)), data)
        encoded += (zigzag_varint(-1),) if value is None else (zigzag_varint(len(value)), value)
    return b"".join(encoded)


def iterate_records(
    batch: Buffer, position: int = 0, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The records of the batch at `position`, at most as many as its header states.

    RecordFormatError if the batch is cut short, its checksum is wrong, or a record doesn't fit.
    """
    header = read_header(batch, position)
    if header.size_bytes > len(batch) - position or header.size_bytes < HEADER_BYTES:
        raise RecordFormatError(f"A batch of {header.size_bytes} bytes at {position} of {len(batch)}.")
    if not is_checksum_valid(batch, position, header):
        raise RecordFormatError(f"The batch at {position} has another checksum than it states.")
    body = memoryview(batch)[position + HEADER_BYTES : position + header.size_bytes]
    yield from _iterate_body(header, decompress(header.compression, body, bytes_max=decompressed_bytes_max))


def _iterate_body(header: BatchHeader, body: bytes) -> Iterator[Record]:
    position = 0
    for _ in range(header.record_count):
        length, position = read_zigzag_varint(body, position)
        if not 0 <= length <= len(body) - position:
            raise RecordFormatError(f"A record of {length} bytes at {position} of {len(body)}.")
        yield _read_record(header, body[position : position + length])
        position += length
    if position != len(body):
        raise RecordFormatError(
            f"The batch's {header.record_count} records end at {position} of {len(body)}."
        )


def _read_record(header: BatchHeader, data: bytes) -> Record:
    timestamp_delta_ms, position = read_zigzag_varint(data, 1)
    offset_delta, position = read_zigzag_varint(data, position)
    key, position = _read_nullable(data, position)
    value, position = _read_nullable(data, position)
    headers, position = _read_headers(data, position)
    if position != len(data):
        raise RecordFormatError(f"A record ends at {position} of {len(data)}.")
    timestamp_ms = (
        header.max_timestamp_ms if header.log_append_time else header.base_timestamp_ms + timestamp_delta_ms
    )
    return Record(header.base_offset + offset_delta, timestamp_ms, key, value, headers)


def _read_headers(data: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_zigzag_varint(data, position)
    if not 0 <= count <= len(data) - position:
        raise RecordFormatError(f"A record states {count} headers.")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _read_nullable(data, position)
        value, position = _read_nullable(data, position)
        headers.append((_header_name(name), value))
    return tuple(headers), position


def _header_name(name: bytes | None) -> str:
    if name is None:
        raise RecordFormatError("A record header has no name.")
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise RecordFormatError("A record header's name isn't UTF-8.") from error


def _read_nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_zigzag_varint(data, position)
    if length < 0:
        return None, position
    if length > len(data) - position:
        raise RecordFormatError(f"A field of {length} bytes at {position} of {len(data)}.")
    return data[position : position + length], position + length
