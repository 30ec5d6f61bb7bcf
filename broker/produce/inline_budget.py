"""How much of a request's records is checked on the loop's thread: less than a millisecond's work.

A thread costs 0.1 ms and more. The walker in Python takes some 5 us for a record, the native one 0.01 us.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.record_walk import IS_NATIVE

INLINE_RECORDS_MAX: Final = 50_000 if IS_NATIVE else 100
"""The records of one request that are checked on the loop's thread."""
INLINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Their size, uncompressed as they came: a bound on headers, which are not counted."""
INLINE_UNPACKED_BYTES_MAX: Final = 256 * 1024
"""The bytes of one request that are unpacked on the loop's thread."""
PACKED_SHARE: Final = 4
"""A batch larger than a fourth of that probably unpacks to more, and is not tried."""


class InlineBudget:
    """What is left of the bounds for one request."""

    __slots__ = ("_bytes", "_records", "_unpacked_bytes")

    def __init__(self) -> None:
        self._records = INLINE_RECORDS_MAX
        self._bytes = INLINE_BYTES_MAX
        self._unpacked_bytes = INLINE_UNPACKED_BYTES_MAX

    @property
    def unpacked_bytes_max(self) -> int:
        """What a batch may unpack to at most."""
        return self._unpacked_bytes

    def take(self, record_count: int, size: int) -> bool:
        """Whether so many records of `size` bytes are within the bounds; they then count."""
        if record_count > self._records or size > self._bytes:
            return False
        self._records -= record_count
        self._bytes -= size
        return True

    def take_packed(self, record_count: int, size: int) -> bool:
        """The same of compressed records. `count_unpacked` is to follow."""
        return PACKED_SHARE * size <= self._unpacked_bytes and self.take(record_count, size)

    def count_unpacked(self, size: int) -> None:
        self._unpacked_bytes -= size
