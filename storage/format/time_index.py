"""The sparse time index of a segment, `.timeindex` in Kafka's format: start offsets for a search by time.

An entry of 12 bytes, big endian: a timestamp in ms (i64) and an offset relative to the segment's base offset
(i32). No record up to that offset has a later timestamp. Both ascend. Look-ups by time are rare, so the
entries are kept as bytes. Share state has no entries, because its times are not timestamps of records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.storage.format.index_bytes import ends_ascend, entries_bytes

ENTRY_BYTES: Final = 12
_ENTRY: Final = Struct(">qi")

NO_TIMESTAMP: Final = -1


class TimeIndex:
    """The index in memory. `append` returns the bytes of the new entry for the file."""

    __slots__ = ("_base_offset", "_data")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self._base_offset = base_offset
        self._data = bytearray(data[: _entries_bytes(data)])

    def __len__(self) -> int:
        return len(self._data) // ENTRY_BYTES

    def entries(self) -> Iterator[tuple[int, int]]:
        """(timestamp in ms, offset) of each entry, in the order of the file."""
        return map(self._entry, range(len(self)))

    def last_entry(self) -> tuple[int, int]:
        """(timestamp in ms, offset) of the largest indexed timestamp; (-1, base offset) without any."""
        return self._entry(len(self) - 1)

    def append(self, timestamp_ms: int, offset: int) -> bytes:
        """Adds an entry, if the timestamp is larger than the last one; returns its bytes or no bytes."""
        last_timestamp_ms, last_offset = self.last_entry()
        if timestamp_ms <= last_timestamp_ms:
            return b""
        assert offset >= last_offset, (offset, last_offset)
        entry = _ENTRY.pack(timestamp_ms, offset - self._base_offset)
        self._data += entry
        return entry

    def floor_offset(self, timestamp_ms: int) -> int:
        """The start offset for a search: all records up to it are earlier than `timestamp_ms`, or it is the
        base offset.
        """
        slot = bisect_left(range(len(self)), timestamp_ms, key=lambda slot: self._entry(slot)[0])
        return self._entry(slot - 1)[1]

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or above `offset`."""
        slot = bisect_left(range(len(self)), offset, key=lambda slot: self._entry(slot)[1])
        del self._data[slot * ENTRY_BYTES :]

    def _entry(self, slot: int) -> tuple[int, int]:
        if slot < 0:
            return NO_TIMESTAMP, self._base_offset
        timestamp_ms, relative_offset = _ENTRY.unpack_from(self._data, slot * ENTRY_BYTES)
        return timestamp_ms, self._base_offset + relative_offset


def _entries_bytes(data: bytes) -> int:
    """The number of bytes that are entries.

    The entry of time 0 at the base offset is all zeros. It can only be the first entry, so a file of exactly
    one entry's size is that entry.
    """
    return ENTRY_BYTES if len(data) == ENTRY_BYTES else entries_bytes(data, ENTRY_BYTES)


def is_sane(data: bytes) -> bool:
    """Whether the bytes are whole entries, and the last one is not before the first."""
    return ends_ascend(data, entries_bytes(data, ENTRY_BYTES), _ENTRY)
