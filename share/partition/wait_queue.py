"""The waiting records of one share-partition in the order of their due times. Pure.

An entry is a hint: its records may have become available, or final, before they were due. So the ends of
waits cost as much as the records that are due, however many others wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

_SWOLLEN_MIN: Final = 1_024
"""A shorter queue is never built anew."""


class Waiting(NamedTuple):
    """Neighbouring records with one due time; both offsets are inclusive."""

    due_ms: int
    first_offset: int
    last_offset: int


class WaitQueue:
    """A heap of entries, with wall-clock times."""

    __slots__ = ("_built_count", "_entries", "first_due_ms")

    def __init__(self) -> None:
        self._entries: list[Waiting] = []
        self._built_count = 0
        self.first_due_ms: int | None = None
        """No waiting record is due before; None if no record waits."""

    @property
    def is_swollen(self) -> bool:
        """Whether many entries may be stale, so that the queue has to be built anew."""
        return len(self._entries) > max(_SWOLLEN_MIN, 2 * self._built_count)

    def add(self, waiting: Waiting) -> None:
        heappush(self._entries, waiting)
        self._note_first()

    def build(self, waiting: Iterable[Waiting]) -> None:
        """Replaces all entries."""
        self._entries = list(waiting)
        heapify(self._entries)
        self._built_count = len(self._entries)
        self._note_first()

    def take_due(self, wall_ms: int) -> list[Waiting]:
        """Removes and returns the entries that are due at this time."""
        due: list[Waiting] = []
        while self._entries and self._entries[0].due_ms <= wall_ms:
            due.append(heappop(self._entries))
        self._note_first()
        return due

    def clear(self) -> None:
        self._entries.clear()
        self.first_due_ms = None

    def _note_first(self) -> None:
        self.first_due_ms = self._entries[0].due_ms if self._entries else None
