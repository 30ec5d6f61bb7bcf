"""The recorded state of one share-partition while its history is replayed: ranges of offsets, never records.

The broker has `storage.format.share_image` for that. The audit has its own code, so that a comparison tests
both. Laying a range over the state returns the contradictions, which the broker does not need.

Ranges are three lists of plain integers, so that finding one is a binary search in C; a *mark* is state and
delivery count in one integer. At most `RANGES_MAX` are held; callers check `is_full`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import RecordState, is_final

RANGES_MAX: Final = 500_000
"""Ranges held at most, some 60 MB; the broker's largest window has far fewer."""

_COUNT_MASK: Final = 0xFFFF
_FOLLOWERS: Final[Mapping[int, frozenset[int]]] = {
    RecordState.AVAILABLE: frozenset(RecordState),
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVING: frozenset({RecordState.ARCHIVING, RecordState.ARCHIVED}),
    RecordState.ARCHIVED: frozenset(),
}
"""The states that may follow a recorded one."""


class Range(NamedTuple):
    """Offsets from first to last, both inclusive, in one state."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


def mark_of(state: int, delivery_count: int) -> int:
    """State and count as one integer."""
    return state << 16 | delivery_count & _COUNT_MASK


def _is_final(mark: int) -> bool:
    return is_final(RecordState(mark >> 16))


def may_become(was: int, now: int) -> bool:
    """Whether a record with the mark `was` may get the mark `now`."""
    return now >> 16 in _FOLLOWERS[was >> 16] and now & _COUNT_MASK >= was & _COUNT_MASK


class LiveRanges:
    """Start and end offset (exclusive), and the ranges between: disjoint, ascending, neighbours different.

    An offset in no range is Available and was never delivered. Below the start everything is final.
    """

    __slots__ = ("end_offset", "firsts", "lasts", "marks", "start_offset")

    def __init__(self, start_offset: int, end_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.marks: list[int] = []

    @property
    def is_full(self) -> bool:
        return len(self.firsts) > RANGES_MAX

    def ranges(self) -> list[Range]:
        """All of them, ascending."""
        return [
            _range(first, last, mark)
            for first, last, mark in zip(self.firsts, self.lasts, self.marks, strict=True)
        ]

    def between(self, first_offset: int, last_offset: int) -> list[Range]:
        """The states from first to last, both inclusive; offsets in no range are Available with count 0."""
        pieces: list[Range] = []
        offset = first_offset
        low = bisect_left(self.lasts, first_offset)
        for slot in range(low, bisect_right(self.firsts, last_offset, low)):
            first = max(self.firsts[slot], first_offset)
            if first > offset:
                pieces.append(Range(offset, first - 1, RecordState.AVAILABLE, 0))
            offset = min(self.lasts[slot], last_offset) + 1
            pieces.append(_range(first, offset - 1, self.marks[slot]))
        if offset <= last_offset:
            pieces.append(Range(offset, last_offset, RecordState.AVAILABLE, 0))
        return pieces

    def overlay(self, first_offset: int, last_offset: int, mark: int) -> list[Range]:
        """Lays a range over the state; returns the earlier parts that contradict it.

        These are parts that were final, that had a greater delivery count, or that were Archiving and can
        only become Archived. The part below the start is ignored and stays final. The start doesn't move
        until `pass_final`.
        """
        first_offset = max(first_offset, self.start_offset)
        if last_offset < first_offset:
            return []
        self.end_offset = max(self.end_offset, last_offset + 1)
        firsts, lasts, marks = self.firsts, self.lasts, self.marks
        if not lasts or lasts[-1] + 1 < first_offset:
            firsts.append(first_offset)
            lasts.append(last_offset)
            marks.append(mark)
            return []
        low = bisect_left(lasts, first_offset)
        high = bisect_right(firsts, last_offset, low)
        contradicted = [
            _range(max(firsts[slot], first_offset), min(lasts[slot], last_offset), marks[slot])
            for slot in range(low, high)
            if not may_become(marks[slot], mark)
        ]
        self._splice(low, high, first_offset, last_offset, mark)
        return contradicted

    def pass_final(self) -> None:
        """Moves the start over the final ranges that begin at it."""
        passed = 0
        for first, last, mark in zip(self.firsts, self.lasts, self.marks, strict=True):
            if first != self.start_offset or not _is_final(mark):
                break
            self.start_offset = last + 1
            passed += 1
        if passed:
            del self.firsts[:passed], self.lasts[:passed], self.marks[:passed]

    def _splice(self, low: int, high: int, first_offset: int, last_offset: int, mark: int) -> None:
        """Replaces the slots from low to high by the range; the outer slots may reach beyond it."""
        firsts, lasts, marks = self.firsts, self.lasts, self.marks
        before = after = None
        if low < high:
            if firsts[low] < first_offset:
                before = (firsts[low], marks[low])
            if lasts[high - 1] > last_offset:
                after = (lasts[high - 1], marks[high - 1])
        if before is None and low and lasts[low - 1] + 1 == first_offset and marks[low - 1] == mark:
            low -= 1
            before = (firsts[low], mark)
        if after is None and high < len(firsts) and firsts[high] == last_offset + 1 and marks[high] == mark:
            after = (lasts[high], mark)
            high += 1
        new_firsts, new_lasts, new_marks = [first_offset], [last_offset], [mark]
        if before is not None:
            if before[1] == mark:
                new_firsts[0] = before[0]
            else:
                new_firsts.insert(0, before[0])
                new_lasts.insert(0, first_offset - 1)
                new_marks.insert(0, before[1])
        if after is not None:
            if after[1] == mark:
                new_lasts[-1] = after[0]
            else:
                new_firsts.append(last_offset + 1)
                new_lasts.append(after[0])
                new_marks.append(after[1])
        firsts[low:high], lasts[low:high], marks[low:high] = new_firsts, new_lasts, new_marks


def live_ranges_of(
    start_offset: int, end_offset: int, states: Iterable[tuple[int, int, int, int]]
) -> LiveRanges:
    """The state of a checkpoint, from (first, last, state, count)."""
    live = LiveRanges(start_offset, end_offset)
    for first, last, state, count in states:
        live.overlay(first, last, mark_of(state, count))
    live.pass_final()
    return live


def _range(first_offset: int, last_offset: int, mark: int) -> Range:
    return Range(first_offset, last_offset, RecordState(mark >> 16), mark & _COUNT_MASK)
