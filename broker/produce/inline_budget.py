"""The bounds for checks of a request's records on the loop's thread: less than a millisecond of work.

A thread costs 0.1 ms and more. The record walker in Python needs some 5 us per record, the native one 0.01
us.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.record_walk import IS_NATIVE

INLINE_RECORDS_MAX: Final = 50_000 if IS_NATIVE else 100
"""The most records of one request that are checked on the loop's thread."""
INLINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The most bytes of these records, as received: it also bounds the record headers, which are not counted."""
INLINE_UNPACKED_BYTES_MAX: Final = 256 * 1024
"""The most bytes of one request, decompressed, that are decompressed on the loop's thread."""
PACKED_SHARE: Final = 4
"""A batch larger than a fourth of that probably decompresses to more, and is not tried."""


class InlineBudget:
    """The rest of the bounds for one request."""

    _records = INLINE_RECORDS_MAX
    _bytes = INLINE_BYTES_MAX
    _unpacked_bytes = INLINE_UNPACKED_BYTES_MAX

    @property
    def unpacked_bytes_max(self) -> int:
        """The most bytes that the next batch may decompress to."""
        return self._unpacked_bytes

    def take(self, record_count: int, size: int) -> bool:
        """Whether `record_count` records of `size` bytes are within the bounds; if so, they are counted."""
        if record_count > self._records or size > self._bytes:
            return False
        self._records -= record_count
        self._bytes -= size
        return True

    def take_packed(self, record_count: int, size: int) -> bool:
        """`take` for compressed records. The caller then calls `count_unpacked`."""
        return PACKED_SHARE * size <= self._unpacked_bytes and self.take(record_count, size)

    def count_unpacked(self, size: int) -> None:
        self._unpacked_bytes -= size
