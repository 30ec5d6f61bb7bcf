"""Checks whether a batch lies at a position of a segment: an index is used only if the bytes agree."""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_file import OpenSegment, check_header
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX
from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, BatchHeader, is_checksum_valid

BATCH_BYTES_MAX: Final = 256 * 1024 * 1024
"""A batch with a greater length in its header is damaged; by default producers may send 1 MiB."""
SEARCH_BYTES: Final = 8 * 1024 * 1024
"""The next batch is looked for within this distance behind a damaged one."""

_BASE_OFFSET = Struct(">q")


def header_at(file: OpenSegment, position: int) -> BatchHeader | None:
    """The header at this position; None if it can't be one."""
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
    """The header of the batch at this position, if it ends before `end` and its checksum is right."""
    header = header_at(file, position)
    if header is None or header.size_bytes > min(end - position, BATCH_BYTES_MAX):
        return None
    data = file.read(position, header.size_bytes)
    is_good = len(data) == header.size_bytes and is_checksum_valid(data, 0, header)
    return header if is_good else None


def find_following(file: OpenSegment, position: int, end: int) -> int | None:
    """The position of the next batch, found by its base offset, behind a batch with a wrong length.

    None if there is none within `SEARCH_BYTES`, for example because compaction left a hole in the offsets.
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
