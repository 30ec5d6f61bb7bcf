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

CHECKED_BYTES_MAX = 64 * 1024 * 1024
"""What a batch may unpack to whose records are looked into before it is appended: 64 times what one has,
packed, by default (max.message.bytes). A larger one is refused as one that cannot be read."""
RECORDS_PER_STEP = 1_000
"""Whoever looks into the records of a batch off the loop lets others go on after so many: 1 or 2 ms."""
INLINE_RECORDS_MAX = 100
"""So many records are looked into at once; a thread costs as much as 100 records take, 0.1 ms and more."""
INLINE_BYTES_MAX = 32 * 1024
"""If they have no more bytes than that, unpacked: an ordinary producer's batch of 16 KiB is well within."""


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


_make_span = RecordSpan._make


def batch_body(
    batch: Buffer, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The records of a whole batch, uncompressed; RecordFormatError if they cannot be unpacked."""
    codec = header.attributes & COMPRESSION_MASK
    if codec > Compression.ZSTD:
        raise RecordFormatError(f"The batch at {header.base_offset} has the unknown codec {codec}.")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return decompress(Compression(codec), body, bytes_max=decompressed_bytes_max)


def small_body(batch: Buffer, header: BatchHeader) -> bytes | None:
    """The records, uncompressed, if there are so few that they can be looked into at once.

    None if there are more, or if they cannot be unpacked.
    """
    if header.record_count > INLINE_RECORDS_MAX or header.size_bytes > INLINE_BYTES_MAX:
        return None
    try:
        return batch_body(batch, header, decompressed_bytes_max=INLINE_BYTES_MAX)
    except RecordFormatError:
        return None


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
    if position + (value_bytes if value_bytes > 0 else 0) > end:  # noqa: FURB136  a call costs a sixth of this
        raise RecordFormatError(f"The fields of the record at {start} don't fit its {end - start} bytes.")
    return _make_span((start, content, rest, end, timestamp_delta_ms, offset_delta, key, value_bytes >= 0))
