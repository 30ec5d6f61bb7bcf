"""The sparse offset index of a segment, `.index` in Kafka's format: positions in the file by offset.

An entry of 8 bytes, big endian: the last offset of a batch relative to the segment's base offset (i32) and
the position in bytes at which that batch begins (i32). There is about one entry for index.interval.bytes of
log, in ascending order. Kafka preallocates the file of its active segment, so zeros at the end are no
entries.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import lt
from struct import Struct
from typing import Final

from barnabas.storage.format.index_bytes import ends_ascend, entries_bytes

ENTRY_BYTES: Final = 8
_ENTRY: Final = Struct(">ii")


class OffsetIndex:
    """The index in memory. `append` returns the bytes of the new entry for the file."""

    __slots__ = ("_base_offset", "_positions", "_relative_offsets")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self._base_offset = base_offset
        numbers = array("i", data[: entries_bytes(data, ENTRY_BYTES)])
        if sys.byteorder == "little":
            numbers.byteswap()
        self._relative_offsets = numbers[0::2]
        self._positions = numbers[1::2]

    def __len__(self) -> int:
        return len(self._positions)

    def append(self, last_offset: int, position: int) -> bytes:
        """Adds an entry for the batch at `position`; `last_offset` is above those of all earlier entries."""
        relative_offset = last_offset - self._base_offset
        assert not self._positions or relative_offset > self._relative_offsets[-1], (last_offset, position)
        self._relative_offsets.append(relative_offset)
        self._positions.append(position)
        return _ENTRY.pack(relative_offset, position)

    def floor_position(self, offset: int) -> int:
        """The position of the nearest entry at or before the batch that holds `offset`, or 0."""
        slot = bisect_right(self._relative_offsets, offset - self._base_offset)
        return self._positions[slot - 1] if slot else 0

    def upper_offset(self, position: int) -> int | None:
        """An offset above those of all batches that begin before `position`: of the nearest entry at or
        behind `position`; None behind the last entry.
        """
        slot = bisect_left(self._positions, position)
        return self._base_offset + self._relative_offsets[slot] if slot < len(self) else None

    def entries(self) -> Iterator[tuple[int, int]]:
        """(last offset of the batch, position) of each entry, in the order of the file."""
        for relative_offset, at in zip(self._relative_offsets, self._positions, strict=True):
            yield self._base_offset + relative_offset, at

    def entries_down(self, offset: int) -> Iterator[tuple[int, int]]:
        """(last offset of the batch, position) from the entry of `floor_position` down to the first.

        Entries that are out of order in a damaged file are left out.
        """
        relative_offset = offset - self._base_offset
        slot = bisect_right(self._relative_offsets, relative_offset)
        for number in range(slot - 1, -1, -1):
            if self._relative_offsets[number] <= relative_offset:
                yield self._base_offset + self._relative_offsets[number], self._positions[number]

    def entries_between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The entries with a position in [start, end)."""
        low, high = bisect_left(self._positions, start), bisect_left(self._positions, end)
        for number in range(low, high):
            yield self._base_offset + self._relative_offsets[number], self._positions[number]

    def is_ascending(self) -> bool:
        """Whether offsets and positions grow from entry to entry, as in an undamaged index."""
        return all(all(map(lt, column, column[1:])) for column in (self._relative_offsets, self._positions))

    def positions_behind(self, position: int) -> Iterator[int]:
        """The positions of the entries behind `position`, ascending."""
        return iter(self._positions[bisect_right(self._positions, position) :])

    def last_entry(self) -> tuple[int, int]:
        """(last offset of the batch, position) of the newest entry; (base offset - 1, 0) without any."""
        if not self._positions:
            return self._base_offset - 1, 0
        return self._base_offset + self._relative_offsets[-1], self._positions[-1]

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or above `offset`."""
        slot = bisect_left(self._relative_offsets, offset - self._base_offset)
        del self._relative_offsets[slot:]
        del self._positions[slot:]


def is_sane(data: bytes) -> bool:
    """Whether the bytes are whole entries, and the last one is not below the first."""
    return ends_ascend(data, entries_bytes(data, ENTRY_BYTES), _ENTRY)
