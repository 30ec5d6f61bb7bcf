"""The index of a segment's share state, `.shareindex`: each control batch of a share group, where and whose.

An entry of 20 bytes, big endian: relative offset u32 (of the batch's first record, to the segment's base
offset), position u32 and length u32 in bytes, group hash u32 (CRC-32C of the group id), last offset delta
u16, kind u8 (5 checkpoint, 6 delta), flags u8 (1 = tombstone). Unlike Kafka's indexes it is complete, since a
batch that it missed would reach a consumer. Its four uses: cutting control batches out of what is read, the
runs of offsets that hold no data, the newest records of a group, and what a segment pins for share groups. A
hash is a hint: whoever reads an entry's record looks at the group id in there.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from operator import add
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from barnabas.protocol.control_record import ControlType
from barnabas.storage.format.index_bytes import entries_bytes

ENTRY_BYTES = 20
TOMBSTONE_FLAG = 1

_ENTRY = Struct(">IIIIHBB")
_COLUMN_COUNT = 5


class ShareIndexEntry(NamedTuple):
    """One control batch of share state; `offset` is its first, `position` and `length_bytes` are in the
    segment.
    """

    offset: int
    position: int
    length_bytes: int
    group_hash: int
    last_offset_delta: int
    kind: int
    tombstone: bool


def group_hash(group_id: str) -> int:
    """By which the index knows a group."""
    return int(crc32c(group_id.encode()))


class ShareIndex:
    """The index in memory, as columns. `append` answers the bytes that have to reach the file."""

    __slots__ = ("_base_offset", "_hashes", "_kinds", "_lengths", "_offsets", "_positions")

    def __init__(self, base_offset: int, data: bytes = b"") -> None:
        self._base_offset = base_offset
        numbers = array("I", data[: entries_bytes(data, ENTRY_BYTES)])
        if sys.byteorder == "little":
            numbers.byteswap()
        self._offsets = numbers[0::_COLUMN_COUNT]
        self._positions = numbers[1::_COLUMN_COUNT]
        self._lengths = numbers[2::_COLUMN_COUNT]
        self._hashes = numbers[3::_COLUMN_COUNT]
        self._kinds = numbers[4::_COLUMN_COUNT]

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, slot: int) -> ShareIndexEntry:
        last = self._kinds[slot]
        return ShareIndexEntry(
            self._base_offset + self._offsets[slot],
            self._positions[slot],
            self._lengths[slot],
            self._hashes[slot],
            last >> 16,
            last >> 8 & 0xFF,
            bool(last & TOMBSTONE_FLAG),
        )

    def append(self, entry: ShareIndexEntry) -> bytes:
        """Adds the batch behind all others."""
        offset, position, length_bytes, hashed, last_offset_delta, kind, tombstone = entry
        relative_offset = offset - self._base_offset
        self._offsets.append(relative_offset)
        self._positions.append(position)
        self._lengths.append(length_bytes)
        self._hashes.append(hashed)
        self._kinds.append(last_offset_delta << 16 | kind << 8 | tombstone)
        return _ENTRY.pack(
            relative_offset, position, length_bytes, hashed, last_offset_delta, kind, tombstone
        )

    @property
    def length_bytes(self) -> int:
        """How many bytes of the segment the indexed batches are."""
        return sum(self._lengths)

    def truncate_to_position(self, position: int) -> None:
        """Drops the entries of batches at or behind `position`."""
        slot = bisect_left(self._positions, position)
        for column in (self._offsets, self._positions, self._lengths, self._hashes, self._kinds):
            del column[slot:]

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """(start, end) in bytes of each control batch that begins in [start, end), ascending."""
        low, high = bisect_left(self._positions, start), bisect_left(self._positions, end)
        starts, lengths = self._positions[low:high], self._lengths[low:high]
        return zip(starts, map(add, starts, lengths), strict=True)

    def end_of_run(self, position: int) -> int:
        """The position behind the control batches that begin at `position`; itself if it begins none."""
        positions, lengths = self._positions, self._lengths
        slot = bisect_left(positions, position)
        while slot < len(positions) and positions[slot] == position:
            position += lengths[slot]
            slot += 1
        return position

    def runs(self) -> Iterator[tuple[int, int]]:
        """(base offset, last offset) of each run of control batches whose offsets adjoin, ascending."""
        if not self._offsets:
            return
        base_offset = self._base_offset
        run_base = next_offset = self._offsets[0]
        for relative_offset, last in zip(self._offsets, self._kinds, strict=True):
            if relative_offset != next_offset:
                yield base_offset + run_base, base_offset + next_offset - 1
                run_base = relative_offset
            next_offset = relative_offset + (last >> 16) + 1
        yield base_offset + run_base, base_offset + next_offset - 1

    def newest_first(self, hashed: int) -> Iterator[ShareIndexEntry]:
        """The entries of the groups with this hash from the last one down.

        Found by searching the column's bytes backwards, so that one among many groups costs no walk.
        """
        hashes = self._hashes.tobytes()
        needle = array("I", (hashed,)).tobytes()
        found = len(hashes)
        while (found := hashes.rfind(needle, 0, found)) >= 0:
            slot, misaligned = divmod(found, len(needle))
            if misaligned:
                found += len(needle) - 1
            else:
                yield self[slot]

    def checkpoints_newest_first(self) -> Iterator[ShareIndexEntry]:
        """The entries of all groups' checkpoints, tombstones among them, from the last one down."""
        slots = [
            slot for slot, last in enumerate(self._kinds) if last >> 8 & 0xFF == ControlType.SHARE_CHECKPOINT
        ]
        return map(self.__getitem__, reversed(slots))

    def encode(self) -> bytes:
        numbers = array("I", bytes(len(self) * ENTRY_BYTES))
        columns = (self._offsets, self._positions, self._lengths, self._hashes, self._kinds)
        for index, column in enumerate(columns):
            numbers[index::_COLUMN_COUNT] = column
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()


def is_sane(data: bytes) -> bool:
    """Whether the size is one of whole entries, all of them written, and the last not below the first."""
    if len(data) % ENTRY_BYTES or entries_bytes(data, ENTRY_BYTES) != len(data):
        return False
    return not data or data[:8] <= data[-ENTRY_BYTES : len(data) - ENTRY_BYTES + 8]
