"""The index of a segment's share state, `.shareindex`: position and group of each control batch.

An entry of 20 bytes, big endian: relative offset u32 (of the batch's first record, to the segment's base
offset), position u32 and length u32 in bytes, group hash u32 (CRC-32C of the group id), last offset delta
u16, kind u8 (5 checkpoint, 6 delta, 0 the mark of a run that was cleaned away), flags u8 (1 = tombstone).
Unlike Kafka's indexes it is complete, because a batch that it lacks would reach a consumer. It has four uses:
cutting control batches out of reads, the runs of offsets without data, the newest records of a group, and the
state that the cleaner may remove. A hash is a hint: a reader of an entry's record must check the group id in
the record.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from heapq import merge
from operator import add, attrgetter, le, lt
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.control_record import ControlType
from barnabas.protocol.record_batch import HEADER_BYTES
from barnabas.storage.format.index_bytes import entries_bytes

ENTRY_BYTES: Final = 20
TOMBSTONE_FLAG: Final = 1
CLEANED: Final = 0
"""The kind of a mark, which belongs to no group; its hash is 0, the hash of the empty name."""
UNKNOWN_HASH: Final = 0
"""The hash of share state with an unreadable group id."""

_ENTRY: Final = Struct(">IIIIHBB")
_COLUMN_COUNT: Final = 5


class ShareIndexEntry(NamedTuple):
    """One control batch of share state, or a mark; `offset` is its first offset, `position` its position in
    the segment.
    """

    offset: int
    position: int
    length_bytes: int
    group_hash: int
    last_offset_delta: int
    kind: int
    tombstone: bool


@lru_cache(maxsize=1024)
def group_hash(group_id: str) -> int:
    """The hash by which the index identifies a group."""
    return int(crc32c(group_id.encode()))


class ShareIndex:
    """The index in memory, as columns. `append` returns the bytes of the new entry for the file."""

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

    def find(self, offset: int) -> ShareIndexEntry | None:
        """The entry of the batch that begins at `offset`."""
        slot = bisect_left(self._offsets, offset - self._base_offset)
        found = slot < len(self) and self._offsets[slot] == offset - self._base_offset
        return self[slot] if found else None

    def entries_between(self, start: int, end: int) -> list[ShareIndexEntry]:
        """The entries of the batches that begin at positions in [start, end)."""
        slots = range(bisect_left(self._positions, start), bisect_left(self._positions, end))
        return [self[slot] for slot in slots]

    def append(self, entry: tuple[int, int, int, int, int, int, bool]) -> bytes:
        """Adds a `ShareIndexEntry`, or its fields: the entry of a batch behind all others."""
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
        """The total size of the indexed batches in the segment."""
        return sum(self._lengths)

    def cleanable_below(self, offset: int) -> tuple[int, bool]:
        """(bytes, has_tombstone): the bytes saved when marks replace the share state below `offset`, and
        whether a tombstone is part of that state.

        A mark behind a mark stays, because the cleaner had a reason not to merge them. The entries are
        visited one by one, because an operation on a whole long column would block other threads.
        """
        gain_bytes, next_offset, was_mark, has_tombstone = 0, -1, False, False
        for slot in range(bisect_left(self._offsets, offset - self._base_offset)):
            relative_offset, last = self._offsets[slot], self._kinds[slot]
            is_mark = last >> 8 & 0xFF == CLEANED
            if relative_offset != next_offset or (is_mark and was_mark):
                gain_bytes -= HEADER_BYTES
            gain_bytes += self._lengths[slot]
            next_offset, was_mark = relative_offset + (last >> 16) + 1, is_mark
            has_tombstone = has_tombstone or bool(last & TOMBSTONE_FLAG)
        return max(gain_bytes, 0), has_tombstone

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

    def has_batch_at(self, position: int) -> bool:
        """Whether a control batch begins at `position`."""
        slot = bisect_left(self._positions, position)
        return slot < len(self._positions) and self._positions[slot] == position

    def end_of_run(self, position: int) -> int:
        """The position behind the run of control batches at `position`; `position` if there is none."""
        positions, lengths = self._positions, self._lengths
        slot = bisect_left(positions, position)
        while slot < len(positions) and positions[slot] == position:
            position += lengths[slot]
            slot += 1
        return position

    def next_data_offset(self, offset: int) -> int:
        """`offset`, or the first one behind its run of control batches if it is in one."""
        relative_offset = offset - self._base_offset
        for slot in range(max(bisect_right(self._offsets, relative_offset) - 1, 0), len(self._offsets)):
            behind = self._offsets[slot] + (self._kinds[slot] >> 16) + 1
            if not self._offsets[slot] <= relative_offset < behind:
                break
            relative_offset = behind
        return self._base_offset + relative_offset

    def previous_data_offset(self, offset: int) -> int:
        """The offset itself, or the last one before the control batches that end or go on there."""
        relative_offset = offset - self._base_offset
        for slot in range(bisect_right(self._offsets, relative_offset) - 1, -1, -1):
            if relative_offset > self._offsets[slot] + (self._kinds[slot] >> 16):
                break
            relative_offset = self._offsets[slot] - 1
        return self._base_offset + relative_offset

    def is_ascending(self) -> bool:
        """Whether offsets and positions grow from entry to entry, and no batch reaches into the next."""
        ends = map(add, self._positions, self._lengths)
        lasts = [offset + (last >> 16) for offset, last in zip(self._offsets, self._kinds, strict=True)]
        return all(map(le, ends, self._positions[1:])) and all(map(lt, lasts, self._offsets[1:]))

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
        """The entries of the groups with this hash, the newest first, without marks.

        The column's bytes are searched backwards, which is faster than a walk over the entries of many
        groups.
        """
        hashes = self._hashes.tobytes()
        needle = array("I", (hashed,)).tobytes()
        found = len(hashes)
        while (found := hashes.rfind(needle, 0, found)) >= 0:
            slot, misaligned = divmod(found, len(needle))
            if misaligned:
                found += len(needle) - 1
            elif self._kinds[slot] >> 8 & 0xFF != CLEANED:
                yield self[slot]

    def newest_first_or_unknown(self, hashed: int) -> Iterator[ShareIndexEntry]:
        """The same, together with the entries of unreadable group ids."""
        found = self.newest_first(hashed)
        if hashed == UNKNOWN_HASH:
            return found
        return merge(found, self.newest_first(UNKNOWN_HASH), key=attrgetter("offset"), reverse=True)

    def checkpoints_newest_first(self) -> Iterator[ShareIndexEntry]:
        """The entries of all groups' checkpoints and tombstones, the newest first."""
        slots = [
            slot for slot, last in enumerate(self._kinds) if last >> 8 & 0xFF == ControlType.SHARE_CHECKPOINT
        ]
        return map(self.__getitem__, reversed(slots))


def is_sane(data: bytes) -> bool:
    """Whether the bytes are whole entries without zeros at the end, each behind the one before it."""
    if len(data) % ENTRY_BYTES or entries_bytes(data, ENTRY_BYTES) != len(data):
        return False
    return ShareIndex(0, data).is_ascending()
