"""Where the records of a batch begin and end, with what a broker asks of them: key, deltas, whether a value.

For those who look at keys and copy records as they are: nothing else is decoded, headers not even looked at.
The format is described in `records`, which decodes whole records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, decompress
from barnabas.protocol.record_batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader, Compression
from barnabas.protocol.varint import Buffer, RecordFormatError, read_zigzag_varint


class RecordSpan(NamedTuple):
    """One record's place in the body of its batch, in bytes.

    The record is `body[start:end]`, its length in front; `content` is behind that length, `rest` behind the
    timestamp delta.
    """

    start: int
    content: int
    rest: int
    end: int
    timestamp_delta_ms: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def batch_body(
    batch: Buffer, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The records of a whole batch, uncompressed; RecordFormatError if they cannot be unpacked."""
    codec = header.attributes & COMPRESSION_MASK
    if codec > Compression.ZSTD:
        raise RecordFormatError(f"The batch at {header.base_offset} has the unknown codec {codec}.")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return decompress(Compression(codec), body, bytes_max=decompressed_bytes_max)


def record_spans(body: bytes, record_count: int) -> Iterator[RecordSpan]:
    """The records in a batch's body; RecordFormatError for one that doesn't fit, or bytes behind the last."""
    position = 0
    for _ in range(record_count):
        start = position
        length, content = read_zigzag_varint(body, start)
        position = content + length
        if length <= 0 or position > len(body):
            raise RecordFormatError(f"A record of {length} bytes at {start} of {len(body)}.")
        yield _read_span(body, start, content, position)
    if position != len(body):
        raise RecordFormatError(f"{record_count} records end at {position} of {len(body)}.")


def _read_span(body: bytes, start: int, content: int, end: int) -> RecordSpan:
    timestamp_delta_ms, rest = read_zigzag_varint(body, content + 1)
    offset_delta, position = read_zigzag_varint(body, rest)
    key_bytes, position = read_zigzag_varint(body, position)
    key = None
    if key_bytes >= 0:
        key = body[position : position + key_bytes]
        position += key_bytes
    value_bytes, position = read_zigzag_varint(body, position)
    if position + max(value_bytes, 0) > end:
        raise RecordFormatError(f"The fields of the record at {start} don't fit its {end - start} bytes.")
    return RecordSpan(
        start, content, rest, end, timestamp_delta_ms, offset_delta, key, has_value=value_bytes >= 0
    )
