"""An event with a deadline, for a loop that waits for several events and for time."""

from __future__ import annotations

import asyncio
from typing import Final

_MS_PER_SECOND: Final = 1000


class Signal:
    """Any code may set it. One task waits for it, and clears it before it looks for the news."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout_ms: float | None) -> None:
        """Return when it is set, or after `timeout_ms`; None waits for ever."""
        if timeout_ms is None:
            await self._event.wait()
            return
        timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / _MS_PER_SECOND, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
