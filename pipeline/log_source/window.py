"""A part of a segment in memory, which moves on when its batches are decoded: one buffer, used again."""

from __future__ import annotations

from typing import Final

from barnabas.pipeline.log_source.errors import SegmentChanged
from barnabas.pipeline.log_source.segment_file import OpenSegment

READ_BYTES: Final = 8 * 1024 * 1024
"""The size of a window, unless one batch is larger."""


class Window:
    """The file from `position` on; at first the buffer is empty."""

    def __init__(self, file: OpenSegment, position: int, end: int, size_bytes: int = READ_BYTES) -> None:
        self.position = position
        self.end = end
        self._file = file
        self._buffer = bytearray(min(size_bytes, end - position))
        self._start = 0
        self._filled = 0

    @property
    def held_bytes(self) -> int:
        return self._filled - self._start

    @property
    def left_bytes(self) -> int:
        """The bytes from the position to the end, in the buffer or not."""
        return self.end - self.position

    def view(self) -> memoryview:
        """The bytes in the buffer. Release them before the window reads on."""
        return memoryview(self._buffer)[self._start : self._filled]

    def advance(self, count_bytes: int) -> None:
        """Moves on by `count_bytes`, which may be more than the buffer has."""
        self.position += count_bytes
        self._start = min(self._start + count_bytes, self._filled)

    def read_on(self, least_bytes: int = 0) -> None:
        """Fills the buffer; makes it larger first if it is smaller than `least_bytes`.

        `SegmentChanged` if the file has shrunk.
        """
        held = self.held_bytes
        if least_bytes > len(self._buffer):
            self._buffer = self._buffer[self._start : self._filled] + bytes(least_bytes - held)
        elif self._start:
            self._buffer[:held] = self._buffer[self._start : self._filled]
        self._start, self._filled = 0, min(len(self._buffer), self.left_bytes)
        with memoryview(self._buffer)[held : self._filled] as free:
            if self._file.read_into(free, self.position + held) < len(free):
                raise SegmentChanged(self._file.path, f"it has shrunk to less than {self.end} bytes")
