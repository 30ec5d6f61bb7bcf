"""How much the body of a batch may unpack to, and the memory that it is unpacked into."""

from __future__ import annotations

import mmap
from typing import Final

from barnabas.protocol.varint import RecordFormatError

DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024
"""What a batch unpacks to at most. It holds for every batch, produced or read: a batch that the broker takes
can be read by everything in this project. A few bytes can stand for gigabytes."""

PIECE_BYTES: Final = 1024 * 1024
"""gzip is unpacked in pieces of this size. Memory above this size comes from the system, which gives pages
only when they are written."""

_MEMORY_IS_FULL: Final = "failed to write whole buffer"
"""What cramjam says where data unpacks to more than the memory that it was given."""


class LargerThanBound(RecordFormatError):  # noqa: N818  named as the condition
    """Data unpacks to more than the bound."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"The data unpacks to something larger than {bytes_max} bytes.")


def refusal(error: Exception, codec: str, bytes_max: int) -> RecordFormatError:
    """The error for one of cramjam's, which unpacked into memory of `bytes_max` bytes."""
    if _MEMORY_IS_FULL in str(error):
        return LargerThanBound(bytes_max)
    return RecordFormatError(f"{codec} data is malformed: {error}")


def room(size: int) -> memoryview:
    """Memory to write to; its content is undefined."""
    return memoryview(bytearray(size) if size <= PIECE_BYTES else mmap.mmap(-1, size))
