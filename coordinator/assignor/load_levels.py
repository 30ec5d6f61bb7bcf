"""The members with the least and the greatest loads, while partitions move from one to the other. Pure.

Members stand in a row by their load. The first ones with equal loads get one partition each before the next
level is tried, and the last ones give up one each. So a whole level rises or falls at a time, and the row is
never sorted again. The caller keeps the loads, and moves a partition after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


class LoadLevels:
    """The levels of members, by number; `loads` is each member's number of partitions at any time."""

    __slots__ = (
        "_least_end",
        "_least_load",
        "_loads",
        "_most_end",
        "_most_load",
        "_most_start",
        "_next_least",
        "_next_most",
        "_row",
        "spread",
    )

    def __init__(self, members: Iterable[int], loads: Sequence[int]) -> None:
        """Needs at least one member."""
        self._loads = loads
        self._row = sorted(members, key=lambda number: (loads[number], number))
        least, most = loads[self._row[0]], loads[self._row[-1]]
        self.spread = most - least
        """The difference between the loads of the first and the last member."""
        # The front level is row[:least_end], the back level row[most_start:most_end]; both begin empty.
        self._least_end = self._next_least = 0
        self._least_load = least - 1
        self._most_start = self._most_end = len(self._row)
        self._most_load = most + 1
        self._next_most = len(self._row) - 1

    def are_even(self) -> bool:
        """Whether the levels are so close that a move would change nothing."""
        return self._most_load - self._least_load <= 1

    def next_least(self) -> int:
        """The member to get a partition."""
        if self._next_least >= self._least_end:
            self._least_load += 1
            while self._least_end < len(self._row) and self._load_at(self._least_end) == self._least_load:
                self._least_end += 1
            self._next_least = 0
        number = self._row[self._next_least]
        self._next_least += 1
        return number

    def next_most(self, can_give: Callable[[int], bool]) -> int | None:
        """The member to give one up; None if none can any more. A member that cannot is not asked again."""
        while True:
            if self._next_most < self._most_start:
                self._sink()
            if self._next_most < 0:
                return None
            number = self._row[self._next_most]
            self._next_most -= 1
            if can_give(number):
                return number
            self._exclude(self._next_most + 1)

    def _sink(self) -> None:
        """Each member of the back level has given up one: the level falls by one and may join another."""
        is_empty = self._most_end <= self._most_start
        if is_empty and self._most_start > 0:
            self._most_load = self._load_at(self._most_start - 1)
        else:
            self._most_load -= 1
        while self._most_start > 0 and self._load_at(self._most_start - 1) == self._most_load:
            self._most_start -= 1
        self._next_most = self._most_end - 1

    def _exclude(self, place: int) -> None:
        """Move a member behind the back level."""
        self._most_end -= 1
        row = self._row
        row[place], row[self._most_end] = row[self._most_end], row[place]

    def _load_at(self, place: int) -> int:
        return self._loads[self._row[place]]
