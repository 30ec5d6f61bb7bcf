"""The schedule of checks for expired offsets: all groups once per interval, in parts, so that other work runs
in between. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

PART_OFFSETS_MAX: Final = 2_000
"""Offsets that are checked at a time; a group with more is a part of its own."""
GROUP_COST: Final = 20
"""The cost of a group in addition to its offsets, counted in offsets."""


class RetentionRounds:
    """The rounds, one per interval. A group that is created during a round is checked in the next one."""

    def __init__(
        self, interval_ms: int, group_ids: Callable[[], Iterable[str]], offset_count: Callable[[str], int]
    ) -> None:
        """`group_ids` returns the present groups, `offset_count` the number of a group's offsets."""
        self._interval_ms = interval_ms
        self._group_ids = group_ids
        self._offset_count = offset_count
        self._round_ms: int | None = None
        """When the next round is due, monotonic."""
        self._part_ms = 0
        """When the last part was taken: the next one is due as soon as the last one has ended."""
        self._left: deque[str] = deque()
        """The groups that are still to be checked in this round."""
        self._under_way = 0
        """Groups of the last part whose check has not ended."""

    def begin(self, now_ms: int) -> None:
        """Groups were loaded; further calls change nothing."""
        if self._round_ms is None:
            self._round_ms = now_ms + self._interval_ms

    def next_deadline_ms(self) -> int | None:
        """When to call `take`; None while the last part is under way."""
        if self._under_way:
            return None
        return self._part_ms if self._left else self._round_ms

    def take(self, now_ms: int) -> list[str]:
        """The groups to check now; call `done` for each."""
        due_ms = self.next_deadline_ms()
        if due_ms is None or due_ms > now_ms:
            return []
        if not self._left:
            self._left.extend(self._group_ids())
            self._round_ms = now_ms + self._interval_ms
        part = self._next_part()
        self._part_ms = now_ms
        self._under_way = len(part)
        return part

    def done(self) -> bool:
        """The check of one group has ended; returns whether it was the last one of its part."""
        self._under_way -= 1
        return not self._under_way

    def _next_part(self) -> list[str]:
        part: list[str] = []
        room = PART_OFFSETS_MAX
        while self._left:
            room -= GROUP_COST + self._offset_count(self._left[0])
            if part and room < 0:
                break
            part.append(self._left.popleft())
        return part
