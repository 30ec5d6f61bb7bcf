"""The bound on open segments: descriptors, and the memory of loaded indexes.

A broker may have thousands of logs and more segments, but only segments in use stay open. Second chance
decides which one is closed: a segment that was used since the last check is spared once, so that a use costs
only one flag. If the system has fewer descriptors than the bound allows, segments are closed until a file can
be opened.
"""

from __future__ import annotations

import errno
from collections import deque
from typing import Final, Protocol

from barnabas.storage.filesystem import File, FileSystem

_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})

_EVICTED_PART: Final = 8
"""Without a free descriptor, one in this number of open segments is closed, because more opens follow."""


def lacks_descriptor(error: OSError) -> bool:
    """Whether the process, or the system, has no descriptor left."""
    return error.errno in _NO_DESCRIPTOR


class Evictable(Protocol):
    """An object that can be closed and opened again at any time, unless it is pinned."""

    used: bool

    @property
    def pinned(self) -> bool: ...

    def evict(self) -> None: ...


class OpenFiles:
    """The open segments, at most `open_files_max` unless more are pinned."""

    __slots__ = ("_members", "_open_files_max")

    def __init__(self, open_files_max: int) -> None:
        self._members: deque[Evictable] = deque()
        self._open_files_max = open_files_max

    def __len__(self) -> int:
        return len(self._members)

    def open(self, filesystem: FileSystem, path: str, *, create: bool = False) -> File:
        """Opens a file; without a free descriptor, closes segments first. Raises OSError."""
        while True:
            try:
                return filesystem.open(path, create=create)
            except OSError as error:
                if not lacks_descriptor(error) or not self.make_room():
                    raise

    def make_room(self) -> bool:
        """Closes some segments that are not pinned; False if there are none."""
        before = len(self._members)
        self._shrink_to(before - max(before // _EVICTED_PART, 1))
        return len(self._members) < before

    def add(self, opened: Evictable) -> None:
        """Adds a segment that was just opened, and closes others beyond the bound."""
        self._shrink_to(self._open_files_max - 1)
        self._members.append(opened)

    def remove(self, closed: Evictable) -> None:
        """Forgets a segment that its owner has closed."""
        self._members.remove(closed)

    def close(self) -> None:
        """Closes all segments, even pinned ones; to be called when no work is under way."""
        while self._members:
            self._members.popleft().evict()

    def _shrink_to(self, count: int) -> None:
        """Closes the least used segments until no more than `count` are open; pinned ones stay."""
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
