"""A set of offsets, kept as ranges. Pure.

Ranges are inclusive at both ends, ascending, disjoint and never adjacent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.protocol.committed_ranges import OffsetRange

OFFSET_MAX: Final = 2**63 - 1


class OffsetSet:
    """Adding at the end, which is the common case, takes constant time."""

    __slots__ = ("_first_offsets", "_last_offsets")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._first_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self.update(ranges)

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._first_offsets)

    def __iter__(self) -> Iterator[OffsetRange]:
        """The ranges, ascending."""
        return map(OffsetRange, self._first_offsets, self._last_offsets)

    def __contains__(self, offset: int) -> bool:
        index = bisect_left(self._last_offsets, offset)
        return index < len(self) and self._first_offsets[index] <= offset

    def add(self, first_offset: int, last_offset: int) -> None:
        """Add a range; one whose first offset is greater than its last one is empty."""
        if first_offset > last_offset:
            return
        first_offsets, last_offsets = self._first_offsets, self._last_offsets
        if not last_offsets or last_offsets[-1] + 1 < first_offset:
            first_offsets.append(first_offset)
            last_offsets.append(last_offset)
            return
        low = bisect_left(last_offsets, first_offset - 1)
        high = bisect_right(first_offsets, last_offset + 1)
        if low < high:
            first_offset = min(first_offset, first_offsets[low])
            last_offset = max(last_offset, last_offsets[high - 1])
        first_offsets[low:high] = [first_offset]
        last_offsets[low:high] = [last_offset]

    def update(self, ranges: Iterable[tuple[int, int]]) -> None:
        for first_offset, last_offset in ranges:
            self.add(first_offset, last_offset)

    def take(self, first_offset: int = 0, last_offset: int = OFFSET_MAX) -> list[OffsetRange]:
        """Remove the offsets between these, both inclusive, and return those that were in the set."""
        low = bisect_left(self._last_offsets, first_offset)
        high = bisect_right(self._first_offsets, last_offset)
        if low >= high or first_offset > last_offset:
            return []
        first_offsets, last_offsets = self._first_offsets[low:high], self._last_offsets[low:high]
        left, right = (first_offsets[0], first_offset - 1), (last_offset + 1, last_offsets[-1])
        kept = [bounds for bounds in (left, right) if bounds[0] <= bounds[1]]
        self._first_offsets[low:high] = [bounds[0] for bounds in kept]
        self._last_offsets[low:high] = [bounds[1] for bounds in kept]
        first_offsets[0] = max(first_offsets[0], first_offset)
        last_offsets[-1] = min(last_offsets[-1], last_offset)
        return list(map(OffsetRange, first_offsets, last_offsets))
