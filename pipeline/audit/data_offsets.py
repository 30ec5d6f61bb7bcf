"""Counts the records in a range of offsets: its offsets without those of control batches.

A recorded range may cover control records that lie between its records, so a count of records needs the
control offsets of the partition. They come in stretches, ascending and packed, and stay packed: at most
`UNPACKED_STRETCHES_MAX` are unpacked at a time, and `PACKED_BYTES_MAX` are kept; beyond that the oldest are
dropped. Below the known offsets every offset of a range counts, so its count may be too high by the control
offsets there, but never too low.

Records that compaction removed count as data, like in the broker. Pure.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import cramjam

STRETCH_RUNS_MAX: Final = 65_536
"""Runs in one stretch at most, so that an unpacked one stays within some megabytes."""
UNPACKED_STRETCHES_MAX: Final = 4
PACKED_BYTES_MAX: Final = 64 * 1024 * 1024

_OFFSET_MAX: Final = 2**63 - 1


class _Stretch(NamedTuple):
    first_offset: int
    control_count_before: int
    """Control offsets in all stretches before this one, with dropped ones."""
    packed: bytes


class _Unpacked(NamedTuple):
    first_offset: int
    end_offset: int
    """The beginning of the next stretch, exclusive end of this one."""
    boundaries: list[int]
    """First offset of a run, offset behind it, first offset of the next one, and so on."""
    counts: list[int]
    """Control offsets of the partition before each run, and in the end behind all of them."""


def pack_runs(runs: array[int]) -> bytes:
    """Flat pairs of (first, last) offset, ascending and apart, in a few bytes a run."""
    distances = array("q")
    behind = 0
    for first, last in zip(runs[::2], runs[1::2], strict=True):
        distances.append(first - behind)
        behind = last + 1
        distances.append(behind - first)
    return bytes(cramjam.lz4.compress_block(distances.tobytes()))


_NOTHING: Final = _Unpacked(0, 0, [], [0])


def offset_count(runs: array[int]) -> int:
    """How many offsets there are in flat pairs of (first, last)."""
    return sum(runs[1::2]) - sum(runs[::2]) + len(runs) // 2


class DataOffsets:
    """The control offsets of one partition, as far as they are known. Everything is in absolute offsets."""

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque()
        self._unpacked: dict[int, _Unpacked] = {}
        self._packed_bytes = 0
        self._control_count = 0
        self._current = _NOTHING

    def add(self, runs: bytes, control_count: int, first_offset: int) -> None:
        """Adds a stretch above all others: packed runs, their number of offsets and the first one."""
        if self._stretches:
            self._end_newest(first_offset)
        self._stretches.append(_Stretch(first_offset, self._control_count, runs))
        self._control_count += control_count
        self._packed_bytes += len(runs)
        while self._packed_bytes > PACKED_BYTES_MAX and len(self._stretches) > 1:
            forgotten = self._stretches.popleft()
            self._packed_bytes -= len(forgotten.packed)
            self._unpacked.pop(forgotten.first_offset, None)
            self._current = _NOTHING

    def count(self, first_offset: int, last_offset: int) -> int:
        """The number of offsets of the range, both ends inclusive, in no run; 0 if the range is empty."""
        if last_offset < first_offset:
            return 0
        below_last = self._control_count_below(last_offset + 1)
        return last_offset - first_offset + 1 - below_last + self._control_count_below(first_offset)

    def count_each(self, first_offsets: Sequence[int], last_offsets: Sequence[int]) -> array[int]:
        """The same for many ranges; most of them lie near the one before."""
        counts = array("q")
        _, end_offset, boundaries, _ = self._current
        low = high = 0
        for first, last in zip(first_offsets, last_offsets, strict=True):
            if low <= first <= last < high:
                counts.append(last - first + 1)
                continue
            counts.append(self.count(first, last))
            if self._current.boundaries is not boundaries:
                _, end_offset, boundaries, _ = self._current
            slot = bisect_right(boundaries, last)
            is_between = slot & 1 == 0 and slot
            low = boundaries[slot - 1] if is_between else 0
            high = (boundaries[slot] if slot < len(boundaries) else end_offset) if is_between else 0
        return counts

    def _end_newest(self, end_offset: int) -> None:
        """The stretch that was the last one ends where the next begins."""
        newest = self._stretches[-1].first_offset
        unpacked = self._unpacked.get(newest)
        if unpacked is not None:
            self._unpacked[newest] = unpacked._replace(end_offset=end_offset)
            self._current = _NOTHING

    def _control_count_below(self, offset: int) -> int:
        current = self._current
        if not current.first_offset <= offset < current.end_offset:
            found = self._at(offset)
            if found is None:
                return self._stretches[0].control_count_before if self._stretches else 0
            self._current = current = found
        boundaries, counts = current.boundaries, current.counts
        slot = bisect_right(boundaries, offset)
        if slot & 1:
            return counts[slot >> 1] + offset - boundaries[slot - 1]
        return counts[slot >> 1]

    def _at(self, offset: int) -> _Unpacked | None:
        """The last stretch that begins at or below the offset; None if there is none."""
        number = bisect_right(self._stretches, offset, key=_first_offset) - 1
        if number < 0:
            return None
        first_offset = self._stretches[number].first_offset
        unpacked = self._unpacked.pop(first_offset, None) or self._unpack(number)
        self._unpacked[first_offset] = unpacked
        if len(self._unpacked) > UNPACKED_STRETCHES_MAX:
            del self._unpacked[next(iter(self._unpacked))]
        return unpacked

    def _unpack(self, number: int) -> _Unpacked:
        stretch = self._stretches[number]
        is_last = number + 1 == len(self._stretches)
        end_offset = _OFFSET_MAX if is_last else self._stretches[number + 1].first_offset
        distances = array("q")
        distances.frombytes(bytes(cramjam.lz4.decompress_block(stretch.packed)))
        boundaries = list(accumulate(distances))
        counts = list(accumulate(distances[1::2], initial=stretch.control_count_before))
        return _Unpacked(stretch.first_offset, end_offset, boundaries, counts)


def _first_offset(stretch: _Stretch) -> int:
    return stretch.first_offset
