"""Whether a batch lies at a place in a segment: an index is believed once the bytes there bear it out."""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_file import OpenSegment, check_header
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX
from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, BatchHeader, is_checksum_valid

BATCH_BYTES_MAX: Final = 256 * 1024 * 1024
"""A batch that states more is damaged; by default producers may send 1 MiB."""
SEARCH_BYTES: Final = 8 * 1024 * 1024
"""So far behind a damaged batch the next one is looked for."""

_BASE_OFFSET = Struct(">q")


def header_at(file: OpenSegment, position: int) -> BatchHeader | None:
    """The header there, None if there is none that makes sense."""
    data = file.read(position, HEADER_BYTES) if position >= 0 else b""
    if len(data) < HEADER_BYTES:
        return None
    header = BatchHeader._make(HEADER.unpack(data))
    try:
        check_header(file.path, position, header)
    except CorruptLog:
        return None
    return header


def good_batch_at(file: OpenSegment, position: int, end: int) -> BatchHeader | None:
    """The header of the batch there, if it ends before `end` and has the checksum that it states."""
    header = header_at(file, position)
    if header is None or header.size_bytes > min(end - position, BATCH_BYTES_MAX):
        return None
    data = file.read(position, header.size_bytes)
    is_good = len(data) == header.size_bytes and is_checksum_valid(data, 0, header)
    return header if is_good else None


def find_following(file: OpenSegment, position: int, end: int) -> int | None:
    """Where the batch lies that goes on with the offset at which the one at `position` ends.

    For a batch whose length cannot be believed. None if there is no such within `SEARCH_BYTES`, as where
    compaction left a hole in the offsets.
    """
    header = header_at(file, position)
    if header is None:
        return None
    start = position + HEADER_BYTES
    data = file.read(start, min(SEARCH_BYTES, end - start)) if start < end else b""
    wanted = _BASE_OFFSET.pack(min(header.last_offset + 1, OFFSET_MAX))
    found = data.find(wanted)
    while found >= 0:
        if good_batch_at(file, start + found, end) is not None:
            return start + found
        found = data.find(wanted, found + 1)
    return None
