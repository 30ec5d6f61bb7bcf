"""Work that serves all of its callers at once: those that arrive while it is under way share the next run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedWork(Generic[T]):
    """The runs of one piece of work, one at a time, on the loop's thread."""

    __slots__ = ("_following", "_lock", "_work")

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._lock = asyncio.Lock()
        """Held while a run is under way."""
        self._following: asyncio.Task[T] | None = None
        """The run that waits for the one under way; it has not looked at anything yet."""

    async def run(self) -> T:
        """The result of a run that begins after this call, or its exception."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._run())
        return await asyncio.shield(self._following)

    async def _run(self) -> T:
        async with self._lock:
            self._following = None
            return await self._work()
