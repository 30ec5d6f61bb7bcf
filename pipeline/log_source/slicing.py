"""Cuts the segments of a partition into slices that each begin at a batch.

The `.index` has the position of a batch every few kilobytes. Behind its last entry, and without a usable
index, headers are read. The `.index` and the `.timeindex` also show which segments, and which ends of a
segment, hold no wanted records. Each position from an index is checked against the batch there.

Only records that cannot match are left out. Times in a log are in no order, so the time index helps only with
a least time: its entries show that no record up to an offset is later, but not that none is earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from barnabas.pipeline.log_source.batch_places import good_batch_at, header_at
from barnabas.pipeline.log_source.directories import PartitionFolder
from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_file import OpenSegment
from barnabas.pipeline.log_source.segment_slice import OFFSET_MAX, UNKNOWN_OFFSET, SegmentSlice
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.time_index import TimeIndex
from barnabas.storage.format.time_index import is_sane as is_sane_time_index

CUT_TRIES: Final = 16
"""Positions of the index that are tried for a cut; if none is right, headers are read."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The wanted part of a partition: offsets in [first_offset, end_offset), and no earlier time."""

    first_offset: int = 0
    end_offset: int = OFFSET_MAX
    time_min_ms: int | None = None


def slice_partition(
    folder: PartitionFolder, wanted: LogBounds, slice_bytes: int, *, tolerant: bool = False
) -> list[SegmentSlice]:
    """The slices with the wanted records, and with as few others as the indexes allow, in the log's order.

    Every batch belongs to exactly one slice. A slice exceeds `slice_bytes` by less than the distance of two
    entries of the index. Raises `CorruptLog` for a file that doesn't begin with a batch, unless `tolerant`.
    """
    slices: list[SegmentSlice] = []
    for number, segment in enumerate(folder.segments):
        end = folder.end_of(number)
        is_outside = segment.base_offset >= wanted.end_offset or (
            end is not None and end <= wanted.first_offset
        )
        if segment.size_bytes and not is_outside:
            slices += _Cutter(folder, number, tolerant=tolerant).slices(wanted, slice_bytes)
    return slices


def log_end_offset(folder: PartitionFolder) -> int:
    """The offset behind the last whole batch of the newest segment; the log's start if there is none."""
    if not folder.segments:
        return folder.log_start_offset
    segment = folder.segments[-1]
    end_offset = segment.base_offset
    with OpenSegment(segment.path) as file:
        last_offset, start = OffsetIndex(segment.base_offset, segment.read_beside(".index")).last_entry()
        if not _fits(file, start, segment.size_bytes, range(segment.base_offset, last_offset + 1)):
            start = 0
        for _, header in file.headers(start, segment.size_bytes):
            end_offset = header.last_offset + 1
    return max(end_offset, folder.log_start_offset)


def _fits(file: OpenSegment, position: int, end: int, base_offsets: range) -> bool:
    """Whether a good batch lies at this position, with one of these base offsets."""
    header = good_batch_at(file, position, end)
    return header is not None and header.base_offset in base_offsets


class _Cutter:
    """Cuts one segment."""

    def __init__(self, folder: PartitionFolder, number: int, *, tolerant: bool) -> None:
        self._folder = folder
        self._segment = folder.segments[number]
        self._is_newest = number + 1 == len(folder.segments)
        end = folder.end_of(number)
        self._is_flushed = end is not None and end <= folder.recovery_point
        self._tolerant = tolerant

    def slices(self, wanted: LogBounds, slice_bytes: int) -> Iterator[SegmentSlice]:
        first_offset = self._first_offset(wanted)
        if first_offset is None or first_offset >= wanted.end_offset:
            return
        index = OffsetIndex(self._segment.base_offset, self._segment.read_beside(".index"))
        with OpenSegment(self._segment.path) as file:
            end = self._end_position(file, index, wanted.end_offset)
            cuts = [self._start_position(file, index, first_offset)]
            while (cut := self._cut_behind(file, index, cuts[-1], end, slice_bytes)) is not None:
                cuts.append(cut)
            for piece in pairwise([*cuts, end]):
                yield from self._slice(file, *piece)

    def _first_offset(self, wanted: LogBounds) -> int | None:
        """The offset from which on the segment can hold wanted records; None if it can't.

        The last entry covers the whole segment only after a flush.
        """
        if wanted.time_min_ms is None:
            return wanted.first_offset
        data = self._segment.read_beside(".timeindex")
        index = TimeIndex(self._segment.base_offset, data if is_sane_time_index(data) else b"")
        if self._is_flushed and 0 <= index.last_entry()[0] < wanted.time_min_ms:
            return None
        return max(wanted.first_offset, index.floor_offset(wanted.time_min_ms))

    def _start_position(self, file: OpenSegment, index: OffsetIndex, first_offset: int) -> int:
        position = index.floor_position(first_offset)
        offsets = range(self._segment.base_offset, first_offset + 1)
        return position if _fits(file, position, self._segment.size_bytes, offsets) else 0

    def _end_position(self, file: OpenSegment, index: OffsetIndex, end_offset: int) -> int:
        """The position from which on, by the index, everything is at or above `end_offset`.

        The first entry above `end_offset` may belong to the batch with that offset; the second can't.
        """
        size_bytes = self._segment.size_bytes
        floor_position = index.floor_position(end_offset - 1)
        for position in islice(index.positions_behind(floor_position), 2):
            if _fits(file, position, size_bytes, range(end_offset, OFFSET_MAX)):
                return position
        return size_bytes

    def _cut_behind(
        self, file: OpenSegment, index: OffsetIndex, start: int, end: int, slice_bytes: int
    ) -> int | None:
        """The beginning of the next slice; None if the rest is one slice."""
        if end - start <= slice_bytes:
            return None
        for last_offset, position in islice(index.entries_between(start + slice_bytes, end), CUT_TRIES):
            offsets = range(self._segment.base_offset, last_offset + 1)
            if start < position < end and _fits(file, position, end, offsets):
                return position
        return self._walk(file, start, end, slice_bytes)

    def _walk(self, file: OpenSegment, start: int, end: int, slice_bytes: int) -> int | None:
        try:
            for position, header in file.headers(start, end):
                behind = position + header.size_bytes
                if behind - start >= slice_bytes and behind < end:
                    return behind
        except CorruptLog:
            if not self._tolerant:
                raise
        return None

    def _slice(self, file: OpenSegment, start: int, end: int) -> Iterator[SegmentSlice]:
        is_log_end = self._is_newest and end == self._segment.size_bytes
        header = header_at(file, start)
        if header is None and not self._tolerant:
            if next(file.headers(start, end), None) is None and is_log_end:
                return
            raise CorruptLog(self._segment.path, f"is cut short within the batch at {start}")
        yield SegmentSlice(
            topic=self._folder.topic,
            partition=self._folder.partition,
            log_path=self._segment.path,
            segment_base_offset=self._segment.base_offset,
            start_position=start,
            end_position=end,
            first_offset=UNKNOWN_OFFSET if header is None else header.base_offset,
            segment_bytes=None if self._is_newest else self._segment.size_bytes,
            is_log_end=is_log_end,
        )
