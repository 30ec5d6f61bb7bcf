"""The limit on the decompressed size of a batch, and the memory for decompression."""

from __future__ import annotations

import mmap
from typing import Final

from barnabas.protocol.varint import RecordFormatError

DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest decompressed body of a batch. The limit applies to produced and to stored batches, so
everything in this project can read each batch that the broker accepts. A few bytes can stand for
gigabytes."""

PIECE_BYTES: Final = 1024 * 1024
"""gzip is decompressed in pieces of this size. The operating system provides memory larger than this, and
allocates its pages only when they are written."""

_MEMORY_IS_FULL: Final = "failed to write whole buffer"
"""cramjam's message if the decompressed data exceeds the given memory."""


class LargerThanBound(RecordFormatError):  # noqa: N818  named as the condition
    """The decompressed data is larger than the limit."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"The decompressed data is larger than {bytes_max} bytes.")


def refusal(error: Exception, codec: str, bytes_max: int) -> RecordFormatError:
    """Converts an error of cramjam, which decompressed into memory of `bytes_max` bytes."""
    if _MEMORY_IS_FULL in str(error):
        return LargerThanBound(bytes_max)
    return RecordFormatError(f"{codec} data is malformed: {error}")


def room(size: int) -> memoryview:
    """Writable memory with undefined content."""
    return memoryview(bytearray(size) if size <= PIECE_BYTES else mmap.mmap(-1, size))
