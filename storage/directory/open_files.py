"""The bound on open segments: descriptors and the memory of loaded indexes.

Logs may be thousands and segments more, but only what is in use stays open. Which one goes is told by a
second chance: whoever was used since it was last looked at is passed over once, so that a use costs one flag
and no bookkeeping.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Evictable(Protocol):
    """What can be closed and opened again at any time, unless it is pinned."""

    used: bool

    @property
    def pinned(self) -> bool: ...

    def evict(self) -> None: ...


class OpenFiles:
    """Everything open, at most `open_files_max` unless more are pinned."""

    __slots__ = ("_members", "_open_files_max")

    def __init__(self, open_files_max: int) -> None:
        self._members: deque[Evictable] = deque()
        self._open_files_max = open_files_max

    def __len__(self) -> int:
        return len(self._members)

    def add(self, opened: Evictable) -> None:
        """Takes in what was just opened, and closes others for it."""
        looks_left = 2 * len(self._members)
        while len(self._members) >= self._open_files_max and looks_left:
            looks_left -= 1
            self._look_at_oldest()
        self._members.append(opened)

    def remove(self, closed: Evictable) -> None:
        """Forgets what was closed by its owner."""
        self._members.remove(closed)

    def close(self) -> None:
        """Closes whatever is open, pinned or not: nobody works on it any more."""
        while self._members:
            self._members.popleft().evict()

    def _look_at_oldest(self) -> None:
        oldest = self._members.popleft()
        if oldest.pinned or oldest.used:
            oldest.used = False
            self._members.append(oldest)
        else:
            oldest.evict()
