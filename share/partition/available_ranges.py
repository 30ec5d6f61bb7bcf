"""Where available records may lie, in a window with many delayed records.

Usually one range from the first to the last available record is good enough. But thousands of delayed
records may lie between a record that has just become due and the newest ones, and no fetch should look at all
of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.protocol.committed_ranges import merged

RANGES_MAX: Final = 1_000
"""With more ranges, they become one."""

Range = tuple[int, int]
"""First and last offset, both inclusive."""


class AvailableRanges:
    """All available records that do not wait lie in these ranges; other records may lie there, too."""

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._ranges: list[Range] = list(ranges)

    def add(self, first_offset: int, last_offset: int) -> None:
        """Records of this range have become available."""
        self._ranges.append((first_offset, last_offset))
        if len(self._ranges) > RANGES_MAX:
            self._merge()
        if len(self._ranges) > RANGES_MAX:
            self._ranges = [(self._ranges[0][0], self._ranges[-1][1])]

    def between(self, first_offset: int, last_offset: int) -> list[Range]:
        """The ranges that reach into this one, ascending and disjoint."""
        self._merge()
        return [
            (first, last) for first, last in self._ranges if first <= last_offset and first_offset <= last
        ]

    def forget_below(self, offset: int) -> None:
        """No available record lies below `offset`."""
        self._ranges = [(first, last) for first, last in self._ranges if last >= offset]

    def _merge(self) -> None:
        self._ranges = [*merged(self._ranges)]
