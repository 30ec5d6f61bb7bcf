"""Reads a segment batch by batch from a position on, and finds the end of its good batches.

Behind the last good batch a crash may leave a part of a batch, zeros, or bytes that never reached the disk. A
good batch has a valid header, offsets above those of the batches before it, and the checksum in its header.
Bad bytes behind a good batch do not invalidate it. `damage` continues behind a bad batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.record_batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    is_checksum_valid,
)
from barnabas.storage.filesystem import Readable

CHUNK_BYTES = 1024 * 1024
_LENGTH_POSITION = 8


class ScannedBatch(NamedTuple):
    """A good batch: its position in the segment, its header and its bytes."""

    position: int
    header: BatchHeader
    data: memoryview


def scan_segment(
    file: Readable,
    position: int,
    size_bytes: int,
    *,
    offsets: range,
    checked_from: int,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[ScannedBatch]:
    """The good batches from the one at `position` on; ends at the first bad one, or with the segment.

    `offsets` are the allowed offsets. Checksums are computed from the offset `checked_from` on: batches below
    it are trusted. Reads `chunk_bytes` (at least a header's size) at a time, or a larger batch. Raises
    OSError.
    """
    chunk, chunk_start = memoryview(b""), position
    while size_bytes - position >= HEADER_BYTES:
        start = position - chunk_start
        if len(chunk) - start < max(_batch_bytes(chunk, start), HEADER_BYTES):
            chunk, chunk_start, start = _read(file, position, chunk_bytes, size_bytes), position, 0
        if len(chunk) - start < HEADER_BYTES:
            return
        header = BatchHeader._make(HEADER.unpack_from(chunk, start))
        batch_bytes = header.size_bytes
        if not (HEADER_BYTES <= batch_bytes <= size_bytes - position and _makes_sense(header, offsets)):
            return  # checked before the read, because damaged bytes may state any size
        if len(chunk) - start < batch_bytes:
            chunk = _read(file, position, batch_bytes, size_bytes)
            if len(chunk) < batch_bytes:
                return
        if header.base_offset >= checked_from and not is_checksum_valid(chunk, start, header):
            return
        if header.base_offset > offsets.start and _is_refuted(
            file, position + batch_bytes, size_bytes, range(offsets.start, header.last_offset + 1)
        ):
            return
        yield ScannedBatch(position, header, chunk[start : start + batch_bytes])
        offsets = range(header.last_offset + 1, offsets.stop)
        position += batch_bytes


def why_not_good(file: Readable, position: int, size_bytes: int, offsets: range) -> str:
    """The reason why `scan_segment` ended at this batch, as a text for people. Raises OSError."""
    data = file.read(position, min(HEADER_BYTES, size_bytes - position))
    if len(data) < HEADER_BYTES:
        return f"its header is cut short after {len(data)} bytes"
    if not any(data):
        return "it begins with zeros"
    header = BatchHeader._make(HEADER.unpack(data))
    if header.magic != MAGIC:
        return f"its magic is {header.magic}, not {MAGIC}"
    if not HEADER_BYTES <= header.size_bytes <= size_bytes - position:
        return f"its header has a size of {header.size_bytes} bytes, and {size_bytes - position} are left"
    if not is_checksum_valid(file.read(position, header.size_bytes), 0, header):
        return "its checksum does not match its bytes"
    found = f"its offsets {header.base_offset} to {header.last_offset}"
    if header.last_offset >= offsets.stop:
        return f"{found} reach beyond {offsets.stop - 1}"
    return f"{found} do not follow {offsets.start - 1}"


def _batch_bytes(chunk: memoryview, start: int) -> int:
    """The size in the header at `start`, 0 if the chunk does not contain it."""
    length = chunk[start + _LENGTH_POSITION : start + LOG_OVERHEAD]
    return LOG_OVERHEAD + int.from_bytes(length, "big", signed=True) if len(length) == 4 else 0


def _read(file: Readable, position: int, bytes_wanted: int, size_bytes: int) -> memoryview:
    return memoryview(file.read(position, min(bytes_wanted, size_bytes - position)))


def _makes_sense(header: BatchHeader, offsets: range) -> bool:
    return header.magic == MAGIC and offsets.start <= header.base_offset <= header.last_offset < offsets.stop


def _is_refuted(file: Readable, position: int, size_bytes: int, offsets: range) -> bool:
    """Whether a good batch at `position` begins within `offsets`.

    Then the batch before it, which leaves a hole in the offsets, has a damaged base offset. The checksum does
    not cover the base offset.
    """
    data = file.read(position, min(HEADER_BYTES, size_bytes - position))
    if len(data) < HEADER_BYTES:
        return False
    header = BatchHeader._make(HEADER.unpack(data))
    if header.magic != MAGIC or header.base_offset not in offsets:
        return False
    if not HEADER_BYTES <= header.size_bytes <= size_bytes - position:
        return False
    return is_checksum_valid(file.read(position, header.size_bytes), 0, header)
