"""The clock of a broker for tests: advances it, and remembers it for the next start on the same directory.

The shift is written before the clock moves, so that no later start has an earlier time than a record in the
logs, not even after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from barnabas.broker.testing.connected_members import ConnectedMembers
from barnabas.coordinator.groups import Groups
from barnabas.runtime.stepping_loop import NANOSECONDS_PER_MS, AlreadyAdvancing, SteppingLoop
from barnabas.storage.filesystem import RealFileSystem

SHIFT_FILE: Final = ".testing-clock"
"""In the data directory: the milliseconds by which the clock is ahead of the system's."""

ADVANCE_MS_MAX: Final = 366 * 24 * 3600 * 1000
"""The longest advance, a leap year."""


def read_shift_ns(directory: str) -> int:
    """The shift that a broker had on this data directory; 0 for a new one. ValueError for a damaged file."""
    path = Path(directory, SHIFT_FILE)
    return int(path.read_text()) * NANOSECONDS_PER_MS if path.exists() else 0


class ClockControl:
    """Advances the loop of one broker."""

    def __init__(
        self, loop: SteppingLoop, filesystem: RealFileSystem, directory: str, members: ConnectedMembers
    ) -> None:
        self._loop = loop
        self._filesystem = filesystem
        self._path = f"{directory}/{SHIFT_FILE}"
        self._members = members
        self._is_advancing = False

    @property
    def ahead_ms(self) -> int:
        """The milliseconds by which the clock is ahead of the system's."""
        return self._loop.shift_ns // NANOSECONDS_PER_MS

    async def advance(self, duration_ms: int, groups: Groups, *, end_sessions: bool) -> None:
        """Advance the clock; returns when all work that became due is written.

        Members with an open connection keep their sessions, unless `end_sessions` is set. Raises
        AlreadyAdvancing, and OSError if the shift cannot be written.
        """
        if self._is_advancing:
            raise AlreadyAdvancing
        self._is_advancing = True
        try:
            shift_ms = self.ahead_ms + duration_ms + 1
            await self._filesystem.replace_whole(self._path, str(shift_ms).encode())
            await self._advance(duration_ms, groups, end_sessions=end_sessions)
        finally:
            self._is_advancing = False

    async def _advance(self, duration_ms: int, groups: Groups, *, end_sessions: bool) -> None:
        def on_jump(jump_ns: int) -> None:
            if not end_sessions:
                self._members.prolong_sessions(groups, -(-jump_ns // NANOSECONDS_PER_MS))

        await self._loop.advance(duration_ms * NANOSECONDS_PER_MS, on_jump)
