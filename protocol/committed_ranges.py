"""The offsets that a group has committed in one partition: all up to the stable offset, and ranges beyond it.

The *stable offset* is inclusive: everything up to and including it is committed, and the committed offset
that Kafka's clients and tools show is the next one. Ranges beyond it were committed individually. They are
inclusive at both ends, ascending, disjoint and never adjacent. A commit is planned first, so that it can be
logged, and changes the state afterwards. Clients also use this to merge ranges before they commit. Pure.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

NOTHING_COMMITTED: Final = -1
"""The stable offset if no offset is committed."""

_SINGLY_MAX: Final = 16
"""More changes than this are faster with new lists than one by one in the old lists."""


class OffsetRange(NamedTuple):
    """Offsets; both ends are inclusive."""

    first_offset: int
    last_offset: int


class RangesChange(NamedTuple):
    """The effect of a commit."""

    stable_offset: int
    """The stable offset after the commit."""
    added: Sequence[OffsetRange]
    """New ranges, ascending."""
    removed: Sequence[OffsetRange]
    """Ranges that are now parts of new ones, or of the offsets up to the stable offset; ascending."""


class CommittedRanges:
    """The stable offset and the ranges of one partition."""

    __slots__ = ("_first_offsets", "_last_offsets", "stable_offset")

    def __init__(
        self, stable_offset: int = NOTHING_COMMITTED, ranges: Iterable[tuple[int, int]] = ()
    ) -> None:
        """The ranges may overlap, touch the stable offset, and be in any order."""
        self.stable_offset = stable_offset
        self._first_offsets: list[int] = []
        self._last_offsets: list[int] = []
        self.commit(ranges)

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._first_offsets)

    def __iter__(self) -> Iterator[OffsetRange]:
        """The ranges, ascending."""
        return map(OffsetRange, self._first_offsets, self._last_offsets)

    def __contains__(self, offset: int) -> bool:
        """Whether the offset is committed."""
        return offset < self.first_uncommitted(offset)

    def first_uncommitted(self, offset: int) -> int:
        """The first offset at or behind `offset` that is not committed."""
        offset = max(offset, self.stable_offset + 1)
        index = bisect_left(self._last_offsets, offset)
        if index < len(self) and self._first_offsets[index] <= offset:
            return self._last_offsets[index] + 1
        return offset

    def commit(self, ranges: Iterable[tuple[int, int]]) -> RangesChange:
        """Commit these offsets: the effect that `plan` returns takes place."""
        change = self.plan(ranges)
        self.stable_offset = change.stable_offset
        if len(change.added) + len(change.removed) > _SINGLY_MAX:
            self._apply_many(change)
        else:
            self._apply_few(change)
        return change

    def plan(self, ranges: Iterable[tuple[int, int]]) -> RangesChange:
        """The effect of committing these offsets, which changes nothing yet.

        The ranges may overlap each other and committed offsets, and be in any order. A range whose first
        offset is greater than its last one is empty, and has no effect.
        """
        new = sorted((first, last) for first, last in ranges if first <= last and last > self.stable_offset)
        change = _Change(self.stable_offset)
        position = 0
        while position < len(new):
            first_offset, last_offset = new[position]
            low = high = bisect_left(self._last_offsets, first_offset - 1)
            while True:  # Take in all that touches, so that no two ranges stay adjacent.
                if position < len(new) and new[position][0] <= last_offset + 1:
                    last_offset = max(last_offset, new[position][1])
                    position += 1
                elif high < len(self) and self._first_offsets[high] <= last_offset + 1:
                    last_offset = max(last_offset, self._last_offsets[high])
                    high += 1
                else:
                    break
            if low < high:
                first_offset = min(first_offset, self._first_offsets[low])
            change.join(OffsetRange(first_offset, last_offset), self._between(low, high))
        return RangesChange(change.stable_offset, change.added, change.removed)

    def has_range(self, wanted: OffsetRange) -> bool:
        """Whether this is one of the ranges, and not only a part of one."""
        index = bisect_left(self._last_offsets, wanted.last_offset)
        return self._between(index, index + 1) == [wanted]

    def remove(self, removed: OffsetRange) -> None:
        """Take back a range. One that has become part of another range stays committed."""
        if self.has_range(removed):
            index = bisect_left(self._last_offsets, removed.last_offset)
            del self._first_offsets[index], self._last_offsets[index]

    def reset(self, stable_offset: int) -> None:
        """Everything up to the stable offset is committed, and nothing beyond it."""
        self.stable_offset = stable_offset
        self._first_offsets.clear()
        self._last_offsets.clear()

    def _between(self, low: int, high: int) -> list[OffsetRange]:
        return list(map(OffsetRange, self._first_offsets[low:high], self._last_offsets[low:high]))

    def _apply_few(self, change: RangesChange) -> None:
        for first_offset, _ in change.removed:
            index = bisect_left(self._first_offsets, first_offset)
            del self._first_offsets[index], self._last_offsets[index]
        for first_offset, last_offset in change.added:
            index = bisect_left(self._first_offsets, first_offset)
            self._first_offsets.insert(index, first_offset)
            self._last_offsets.insert(index, last_offset)

    def _apply_many(self, change: RangesChange) -> None:
        kept = sorted(set(self).difference(change.removed).union(change.added))
        self._first_offsets = [first_offset for first_offset, _ in kept]
        self._last_offsets = [last_offset for _, last_offset in kept]


class _Change:
    """The effect of a commit while it is being planned."""

    __slots__ = ("added", "removed", "stable_offset")

    def __init__(self, stable_offset: int) -> None:
        self.stable_offset = stable_offset
        self.added: list[OffsetRange] = []
        self.removed: list[OffsetRange] = []

    def join(self, joined: OffsetRange, parts: list[OffsetRange]) -> None:
        """New offsets and the ranges that they touch are one range now; `parts` are those ranges."""
        if joined.first_offset <= self.stable_offset + 1:
            self.stable_offset = joined.last_offset
        elif parts == [joined]:
            return
        else:
            self.added.append(joined)
        self.removed += parts


def merged(ranges: Iterable[tuple[int, int]]) -> list[OffsetRange]:
    """The same offsets in as few ranges as possible, ascending. Empty ranges are left out."""
    joined: list[OffsetRange] = []
    for offset_range in sorted(itertools.starmap(OffsetRange, ranges)):
        if offset_range.first_offset > offset_range.last_offset:
            continue
        if joined and offset_range.first_offset <= joined[-1].last_offset + 1:
            last_offset = max(offset_range.last_offset, joined[-1].last_offset)
            joined[-1] = joined[-1]._replace(last_offset=last_offset)
        else:
            joined.append(offset_range)
    return joined
