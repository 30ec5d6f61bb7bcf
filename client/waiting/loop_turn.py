"""When a caller that never waits should let other tasks run."""

from __future__ import annotations

import asyncio
from typing import Final

TURN_SECONDS: Final = 0.01
"""How long calls may return without letting other tasks, such as heartbeats, run."""


class LoopTurn:
    """One for each object whose methods may return at once, again and again."""

    __slots__ = ("_ends_at", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends_at = 0.0

    def is_over(self) -> bool:
        """Whether to let other tasks run now; a new turn begins."""
        now = self._loop.time()
        if now < self._ends_at:
            return False
        self._ends_at = now + TURN_SECONDS
        return True
