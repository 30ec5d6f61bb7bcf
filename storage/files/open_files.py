"""The bound on open segments: descriptors and the memory of loaded indexes.

Logs may be thousands and segments more, but only what is in use stays open. Which one goes is told by a
second chance: whoever was used since it was last looked at is passed over once, so that a use costs one flag
and no bookkeeping. If the system has fewer descriptors than the bound allows, segments are closed until a
file can be opened.
"""

from __future__ import annotations

import errno
from collections import deque
from typing import Final, Protocol

from barnabas.storage.filesystem import File, FileSystem

_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})

_EVICTED_PART: Final = 8
"""Without a free descriptor, this part of what is open is closed together: more files will be opened soon."""


def lacks_descriptor(error: OSError) -> bool:
    """Whether the process, or the system, has no descriptor left."""
    return error.errno in _NO_DESCRIPTOR


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

    def open(self, filesystem: FileSystem, path: str, *, create: bool = False) -> File:
        """Opens a file, and closes segments for it if there is no descriptor left; raises OSError."""
        while True:
            try:
                return filesystem.open(path, create=create)
            except OSError as error:
                if not lacks_descriptor(error) or not self.make_room():
                    raise

    def make_room(self) -> bool:
        """Closes some of what is open and not pinned; False if there is no such thing."""
        before = len(self._members)
        self._shrink_to(before - max(before // _EVICTED_PART, 1))
        return len(self._members) < before

    def add(self, opened: Evictable) -> None:
        """Takes in what was just opened, and closes others for it."""
        self._shrink_to(self._open_files_max - 1)
        self._members.append(opened)

    def remove(self, closed: Evictable) -> None:
        """Forgets what was closed by its owner."""
        self._members.remove(closed)

    def close(self) -> None:
        """Closes whatever is open, pinned or not: nobody works on it any more."""
        while self._members:
            self._members.popleft().evict()

    def _shrink_to(self, count: int) -> None:
        """Closes the least used until no more than `count` are open; pinned ones stay."""
        looks_left = 2 * len(self._members)
        while len(self._members) > count and looks_left:
            looks_left -= 1
            self._look_at_oldest()

    def _look_at_oldest(self) -> None:
        oldest = self._members.popleft()
        if oldest.pinned or oldest.used:
            oldest.used = False
            self._members.append(oldest)
        else:
            oldest.evict()
