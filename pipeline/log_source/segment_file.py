"""The files of one segment: opens them, reads at a position, walks over the batches by their headers.

This module decodes nothing and computes no checksums. It raises `SegmentChanged` for a file that was removed
or has shrunk since it was found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from barnabas.pipeline.log_source.errors import CorruptLog, SegmentChanged
from barnabas.protocol.record_batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader

LOG_SUFFIX: Final = ".log"
OFFSET_DIGITS: Final = 20
"""The number of digits in a segment's name, which is its first offset."""

HEADER_WINDOW_BYTES: Final = 64 * 1024
"""The size of one read while walking over headers, which is large for the sake of small batches."""
LONG_BATCH_BYTES: Final = 16 * 1024
"""Behind a batch of this size only a header is read, because the next batch is probably as large."""

_REMOVED = "it was removed after the query was planned, by retention or compaction; run the query again"


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment as it was found: its log file, the offset in its name, its size."""

    path: str
    base_offset: int
    size_bytes: int

    def read_beside(self, suffix: str) -> bytes:
        """The content of the segment's file with this suffix, such as `.index`; empty if there is none."""
        try:
            return Path(self.path).with_suffix(suffix).read_bytes()
        except FileNotFoundError:
            return b""


class OpenSegment:
    """An open log file. A context manager; `SegmentChanged` if the file has gone."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise SegmentChanged(path, _REMOVED) from error

    def __enter__(self) -> OpenSegment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def size_bytes(self) -> int:
        """The present size of the file."""
        return os.fstat(self._descriptor).st_size

    def read(self, position: int, count_bytes: int) -> bytes:
        """Up to `count_bytes` from `position` on; fewer only at the end of the file."""
        return os.pread(self._descriptor, count_bytes, position)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fills the buffer from `position` on; returns the number of bytes, fewer only at the file's end."""
        filled = 0
        while filled < len(buffer):
            count = os.preadv(self._descriptor, [buffer[filled:]], position + filled)
            if count == 0:
                break
            filled += count
        return filled

    def headers(self, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each whole batch in [start, end), where a batch begins at `start`.

        Stops before a batch that `end` cuts, and before zeros, which preallocated files have behind their
        data. `CorruptLog` for a malformed header.
        """
        position, window, window_start = start, b"", start
        window_bytes = HEADER_WINDOW_BYTES
        while end - position >= HEADER_BYTES:
            at = position - window_start
            if len(window) - at < HEADER_BYTES:
                window = self.read(position, min(window_bytes, end - position))
                window_start, at = position, 0
                if len(window) < HEADER_BYTES:
                    raise SegmentChanged(self.path, f"it has shrunk to less than {end} bytes")
            header = BatchHeader._make(HEADER.unpack_from(window, at))
            if header.magic == 0 and header.batch_length == 0 and header.base_offset == 0:
                return
            check_header(self.path, position, header)
            if position + header.size_bytes > end:
                return
            yield position, header
            position += header.size_bytes
            window_bytes = HEADER_BYTES if header.size_bytes >= LONG_BATCH_BYTES else HEADER_WINDOW_BYTES


def check_header(path: str, position: int, header: BatchHeader) -> None:
    """`CorruptLog` if the header can't be a batch's."""
    if header.magic in (0, 1):
        reason = f"at {position} is no batch, or one of message format {header.magic}, which isn't supported"
        raise CorruptLog(path, reason)
    if header.magic != MAGIC:
        raise CorruptLog(path, f"at {position} is no batch: its magic is {header.magic}, not {MAGIC}")
    if header.size_bytes < HEADER_BYTES or header.last_offset_delta < 0:
        raise CorruptLog(path, f"the batch at {position} states a length of {header.batch_length} bytes")
