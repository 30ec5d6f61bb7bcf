"""The segments of one log in the order of their offsets: at least one; the last one is active."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from barnabas.storage.segments.segment import Segment


class Segments:
    """An ordered list with look-ups by offset."""

    __slots__ = ("_base_offsets", "_segments", "active")

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = list(segments)
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = self._segments[-1]
        """The segment that gets the appends."""

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __reversed__(self) -> Iterator[Segment]:
        return reversed(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def floor(self, offset: int) -> Segment:
        """The segment whose range contains `offset`; the first one for offsets below all segments."""
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0)]

    def from_offset(self, offset: int) -> Sequence[Segment]:
        """The segments from the one whose range contains `offset` on, ascending."""
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0) :]

    def after(self, segment: Segment) -> Segment | None:
        """The next segment; None behind the active one."""
        slot = bisect_right(self._base_offsets, segment.base_offset)
        return self._segments[slot] if slot < len(self._segments) else None

    def roll(self, segment: Segment) -> None:
        """Makes `segment` the active one."""
        assert segment.base_offset > self.active.base_offset, (segment.base_offset, self.active.base_offset)
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self.active = segment

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Puts `new` in the place of adjoining segments; none of them is active."""
        first = self._segments.index(old[0])
        end = first + len(old)
        assert self._segments[first:end] == list(old) and end < len(self._segments), (first, end)
        assert new.base_offset == old[0].base_offset, (new.base_offset, old[0].base_offset)
        self._segments[first:end] = [new]
        self._base_offsets[first:end] = [new.base_offset]

    def drop_first(self, count: int) -> Sequence[Segment]:
        """Removes the oldest segments from the list, never the active one, and returns them."""
        assert count < len(self._segments), count
        dropped = self._segments[:count]
        del self._segments[:count], self._base_offsets[:count]
        return dropped
