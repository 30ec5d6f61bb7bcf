"""The time that running handlers have after a stop: `ShareConsumer.stop` begins it, and `run` keeps to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

_MS_PER_SECOND: Final = 1000


class StopDeadline:
    """There is none before the stop."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_seconds = timeout_ms / _MS_PER_SECOND
        self._ends_at: float | None = None
        """In the time of the event loop."""
        self._blocks: set[asyncio.Timeout] = set()

    def begin(self) -> None:
        """The time begins now; a second call ends it."""
        now = asyncio.get_running_loop().time()
        self._ends_at = now + self._timeout_seconds if self._ends_at is None else now
        for block in self._blocks:
            if not block.expired():
                block.reschedule(self._ends_at)

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Ends the block, without an error, when the time after a stop is over."""
        block = asyncio.timeout_at(self._ends_at)
        self._blocks.add(block)
        try:
            async with block:
                yield
        except TimeoutError:
            if not block.expired():
                raise
        finally:
            self._blocks.discard(block)
