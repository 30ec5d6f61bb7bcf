"""The segments that may be cleaned, in a form for the cleaner's threads: by path, with unchanging properties.

A segment may be cleaned once it is closed and durable, including its indexes. A thread opens the files
itself, because the log's own handles belong to the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from barnabas.protocol.record_batch import HEADER_BYTES, read_header
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.filesystem import File, FileSystem, read_whole
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.format.transaction_index import TransactionIndex
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.segment_scan import ScannedBatch, scan_segment
from barnabas.storage.state.log_state import LogState


class Source(NamedTuple):
    """One segment that may be cleaned; its batches end below `end_offset`."""

    segment: Segment
    end_offset: int

    @property
    def base_offset(self) -> int:
        return self.segment.base_offset

    @property
    def size_bytes(self) -> int:
        return self.segment.size_bytes


def cleanable_sources(log: LogState) -> list[Source]:
    """The segments that may be cleaned, ascending: all up to the first one that may not."""
    sources: list[Source] = []
    for segment in log.segments:
        following = log.segments.after(segment)
        if following is None or following.base_offset > log.durability.recovery_point:
            break
        if any(index.pending_bytes for index in segment.indexes):
            break
        sources.append(Source(segment, following.base_offset))
    return sources


def read_batches(file: File, source: Source, position: int = 0) -> Iterator[ScannedBatch]:
    """The batches of a segment from the one at `position` on, with verified checksums.

    Raises RecordFormatError at the first damaged one; OSError.
    """
    offsets = range(source.base_offset, source.end_offset)
    size_bytes = source.size_bytes
    for batch in scan_segment(file, position, size_bytes, offsets=offsets, checked_from=0):
        yield batch
        position = batch.position + len(batch.data)
    if position != size_bytes:
        raise RecordFormatError(f"{source.segment.log_path} has a damaged batch at {position}.")


def position_of(filesystem: FileSystem, source: Source, offset: int) -> int:
    """The position of a batch at or before the one that holds `offset`."""
    if offset <= source.base_offset:
        return 0
    index = source.segment.offset_index
    data = index.checked(read_whole(filesystem, index.path))
    return OffsetIndex(source.base_offset, data).floor_position(offset)


def read_share_index(filesystem: FileSystem, source: Source) -> ShareIndex:
    index = source.segment.share_index
    return ShareIndex(source.base_offset, index.checked(read_whole(filesystem, index.path)))


def read_transaction_index(filesystem: FileSystem, source: Source) -> TransactionIndex:
    """The transactions with abort markers in the segment; RecordFormatError, OSError."""
    if not source.segment.has_aborted:
        return TransactionIndex()
    index = source.segment.transaction_index
    return TransactionIndex(index.checked(read_whole(filesystem, index.path)))


def first_timestamp_ms(filesystem: FileSystem, source: Source) -> int:
    """The largest timestamp of the first data batch; -1 without any."""
    position = read_share_index(filesystem, source).end_of_run(0)
    if position >= source.size_bytes:
        return -1
    with closing(filesystem.open(source.segment.log_path, create=False)) as file:
        return read_header(file.read(position, HEADER_BYTES)).max_timestamp_ms
