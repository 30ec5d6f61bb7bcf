"""Splits a stream of bytes into frames: a length of four bytes, big endian, and as many bytes.

The decoder serves `asyncio.BufferedProtocol` but does not depend on it. The caller receives into the view
from `get_buffer`, drops the view, and passes the number of received bytes to `buffer_updated`, which returns
the frames that are complete. Small frames are read many at a time into one reused buffer, and copied out of
it. A large frame gets a buffer of its own, and the rest of it is received directly into that. `header` and
`codec` decode the content.

Bounds: a frame is at most `max_frame_bytes` long. Its buffer grows by as many bytes as have arrived, and by
at most `GROWTH_BYTES_MAX` at a time, so a peer cannot reserve memory by announcing a length. A peer that has
sent a large frame immediately gets a buffer of that size for its next one, up to `GROWTH_BYTES_MAX`. That
saves reads, and the operating system allocates no memory for pages that were never written.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import FrameError
from barnabas.protocol.foreign import foreign_protocol

_LENGTH: Final = struct.Struct(">i")
LENGTH_BYTES: Final = _LENGTH.size
RECEIVE_BUFFER_BYTES: Final = 32 * 1024
"""Size of a connection's reused buffer: the most that is received at once outside a large frame."""
LARGE_FRAME_BYTES: Final = 16 * 1024
"""An incomplete frame of at least this size is received into a buffer of its own."""
GROWTH_BYTES_MIN: Final = 64 * 1024
"""The first size of the buffer for a peer's first large frame, unless the frame is smaller."""
GROWTH_BYTES_MAX: Final = 1024 * 1024
"""A full buffer doubles while that adds no more than this, and then grows by this."""
_ZEROS: Final = bytes(GROWTH_BYTES_MAX)


class FrameDecoder:
    """Splits one connection's incoming bytes into frames. Not usable after a `FrameError`."""

    __slots__ = (
        "_counted_bytes",
        "_filled",
        "_first_bytes",
        "_large",
        "_large_bytes",
        "_large_filled",
        "_receive",
        "_view",
        "is_receiving_large",
        "max_frame_bytes",
    )

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._receive = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._receive)
        self._filled = 0
        self._large: bytearray | None = None
        self.is_receiving_large = False
        """Whether a large frame is in progress."""
        self._large_bytes = 0
        self._large_filled = 0
        self._counted_bytes = 0
        self._first_bytes = GROWTH_BYTES_MIN

    @property
    def awaited_bytes(self) -> int:
        """The length of the large frame in progress; 0 if there is none."""
        return 0 if self._large is None else self._large_bytes

    @property
    def held_bytes(self) -> int:
        """The memory that counts for the large frame in progress: the size of a buffer that grows with it.

        0 if there is none.
        """
        return 0 if self._large is None else self._counted_bytes

    def get_buffer(self, size_hint: int) -> memoryview:
        """The memory to receive into, never empty. Drop the view before the next call."""
        if self._large is None:
            return self._view[self._filled :]
        if self._large_filled == len(self._large):
            self._grow(self._large)
        return memoryview(self._large)[self._large_filled :]

    def buffer_updated(self, byte_count: int) -> list[memoryview | bytes | FrameError]:
        """The frames that are complete after `byte_count` more bytes were received into the last buffer.

        The frames are in the order of the stream, without their lengths. They belong to the caller: none
        shares memory with a buffer that is written again. Bytes after a negative or excessive length cannot
        be read, so the last element is then a `FrameError`. It is returned, not raised, because the frames
        before it are valid, regardless of how the stream was split when it arrived.
        """
        if self._large is None:
            filled = self._filled = self._filled + byte_count
            size_bytes = filled - LENGTH_BYTES
            if (
                0 <= size_bytes <= self.max_frame_bytes
                and _LENGTH.unpack_from(self._receive)[0] == size_bytes
            ):
                # One whole frame, as usual.
                self._filled = 0
                return [bytes(self._view[LENGTH_BYTES:filled])]
            return self._split()
        self._large_filled += byte_count
        if self._large_filled < self._large_bytes:
            while self._counted_bytes <= self._large_filled:
                self._counted_bytes += self._growth_bytes(self._counted_bytes)
            return []
        frame = memoryview(self._large).toreadonly()
        self._large = None
        self.is_receiving_large = False
        if self._large_bytes > self._first_bytes:
            self._first_bytes = min(self._large_bytes, GROWTH_BYTES_MAX)
        return [frame]

    def _split(self) -> list[memoryview | bytes | FrameError]:
        receive, filled = self._receive, self._filled
        frames: list[memoryview | bytes | FrameError] = []
        start = 0
        while filled - start >= LENGTH_BYTES:
            body = start + LENGTH_BYTES
            (size_bytes,) = _LENGTH.unpack_from(receive, start)
            if not 0 <= size_bytes <= self.max_frame_bytes:
                foreign = foreign_protocol(bytes(self._view[start:filled]))
                frames.append(foreign or _bad_length(size_bytes, self.max_frame_bytes))
                break
            if size_bytes > filled - body:
                if size_bytes >= LARGE_FRAME_BYTES:
                    self._begin_large(body, size_bytes)
                    return frames
                break
            start = body + size_bytes
            frames.append(bytes(self._view[body:start]))
        if start:
            # The rest is shorter than a large frame, so the buffer always has room for the whole frame.
            self._filled = filled - start
            receive[: self._filled] = receive[start:filled]
        return frames

    def _begin_large(self, body: int, size_bytes: int) -> None:
        """Moves the bytes from `body` on, which all belong to the frame that starts there."""
        received = self._view[body : self._filled]
        self._large = bytearray(min(size_bytes, self._first_bytes))
        self.is_receiving_large = True
        self._large[: len(received)] = received
        self._large_bytes = size_bytes
        self._counted_bytes = min(size_bytes, GROWTH_BYTES_MIN)
        self._large_filled = len(received)
        self._filled = 0

    def _grow(self, large: bytearray) -> None:
        """Grows in place: for a buffer of this size, the operating system moves pages instead of copying."""
        large += memoryview(_ZEROS)[: self._growth_bytes(len(large))]

    def _growth_bytes(self, size_bytes: int) -> int:
        """By how much a full buffer of this size grows."""
        return min(size_bytes, GROWTH_BYTES_MAX, self._large_bytes - size_bytes)


def _bad_length(size_bytes: int, max_frame_bytes: int) -> FrameError:
    if size_bytes < 0:
        return FrameError(f"A frame's length is negative: {size_bytes}.")
    return FrameError(f"A frame of {size_bytes} bytes is longer than {max_frame_bytes}.")
