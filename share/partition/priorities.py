"""The priorities of records (`share.priority.header`), and the limit of overtaking. Pure.

A record has a priority from 0 to 9. A delivery *overtakes* the records before it that could have been
delivered instead. Each of these counts such deliveries. From `overtaken_max` on it is *overdue*, and comes
before all priorities. A record that comes again, or has waited for its key, begins to count again. So do all
records after a restart, because nothing is recorded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

PRIORITY_MAX: Final = 9
"""The most urgent records."""


class Priorities:
    """The unfinished records with a priority above 0, and the deliveries that have overtaken others."""

    __slots__ = ("_counted_before", "_of_priority", "_overtaking", "header_name", "overtaken_max")

    def __init__(self, header_name: str, overtaken_max: int) -> None:
        self.header_name = header_name
        self.overtaken_max = overtaken_max
        """At least 1."""
        self._of_priority: list[list[int]] = [[] for _ in range(PRIORITY_MAX + 1)]
        """The offsets of each priority, ascending; those of priority 0 are left out."""
        self._overtaking: list[int] = []
        """The offsets of the records that were delivered before an earlier available one, ascending, once for
        each delivery. Those before the first available record are forgotten.
        """
        self._counted_before: dict[int, int] = {}
        """For a record that became available later than others behind it: the number of overtaking
        deliveries behind it at that time.
        """

    @property
    def has_effect(self) -> bool:
        """Whether the first records of keys may be delivered in another order than that of offsets."""
        return bool(self._overtaking) or any(self._of_priority)

    def add(self, offsets: Sequence[int], priorities: bytes) -> None:
        """Add records behind all that were added before, ascending, with a byte for each priority."""
        for offset, priority in zip(offsets, priorities, strict=True):
            if priority:
                self._of_priority[priority].append(offset)

    def finish(self, first_offset: int, last_offset: int) -> None:
        """The records of this range have become final."""
        for offsets in self._of_priority:
            if offsets:
                del offsets[bisect_left(offsets, first_offset) : bisect_right(offsets, last_offset)]
        if self._counted_before:
            for offset in range(first_offset, last_offset + 1):
                self._counted_before.pop(offset, None)

    def most_urgent_first(self) -> Iterator[int]:
        """The unfinished records with a priority above 0, by priority and then by offset."""
        return chain.from_iterable(reversed(self._of_priority))

    def between(self, first_offset: int, last_offset: int) -> dict[int, int]:
        """The priorities above 0 of the unfinished records in this range, by offset; both ends are
        inclusive.
        """
        return {
            offset: priority
            for priority, offsets in enumerate(self._of_priority)
            for offset in offsets[bisect_left(offsets, first_offset) : bisect_right(offsets, last_offset)]
        }

    def begin_to_count(self, offsets: Iterable[int]) -> None:
        """These records have become available, and no longer wait for their keys."""
        for offset in offsets:
            count = self._count_behind(offset)
            if count:
                self._counted_before[offset] = count
            else:
                self._counted_before.pop(offset, None)

    def overdue(self, available: Iterable[int]) -> Iterator[int]:
        """Those of the ascending available records that no other may overtake."""
        for offset in available:
            count = self._count_behind(offset)
            if count < self.overtaken_max:
                return  # Fewer deliveries have overtaken the records behind it.
            if count - self._counted_before.get(offset, 0) >= self.overtaken_max:
                yield offset

    def note_delivered(self, delivered: Iterable[tuple[int, int]], first_available: int | None) -> int:
        """Members got the records of these ranges, both ends inclusive, and `first_available` is the first
        record that is left. Returns the number of records that have overtaken it.
        """
        if first_available is None:
            self._overtaking.clear()
            return 0
        del self._overtaking[: bisect_left(self._overtaking, first_available)]
        count = 0
        for first_offset, last_offset in delivered:
            for offset in range(max(first_offset, first_available), last_offset + 1):
                count += 1
                insort(self._overtaking, offset)
        return count

    def _count_behind(self, offset: int) -> int:
        return len(self._overtaking) - bisect_right(self._overtaking, offset)
