"""Removes files some time after they were marked as deleted (file.delete.delay.ms).

Files that still wait when the log is closed, or when the process dies, are removed when the log is opened
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.runtime.logging import get_logger
from barnabas.runtime.tasks import Tasks
from barnabas.storage.filesystem import FileSystem

logger = get_logger("log")


class DelayedRemoval:
    """The marked files of one log. Used on the loop's thread only."""

    __slots__ = ("_filesystem", "_tasks", "_timers")

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks = Tasks()

    def remove_later(self, paths: Sequence[str], delay_ms: int) -> None:
        """Removes the files after `delay_ms`, unless closed before."""

        def due() -> None:
            self._timers.discard(timer)
            self._tasks.start(self._remove(paths))

        timer = asyncio.get_running_loop().call_later(delay_ms / 1000, due)
        self._timers.add(timer)

    async def close(self) -> None:
        """Cancels later removals and waits for those under way."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        await self._tasks.drained()

    async def _remove(self, paths: Sequence[str]) -> None:
        try:
            await self._filesystem.run(_remove_files, self._filesystem, paths)
        except OSError as error:
            # They no longer belong to the log; the next opening removes them.
            logger.warning("deleted files were not removed", reason=str(error))


def _remove_files(filesystem: FileSystem, paths: Sequence[str]) -> None:
    for path in paths:
        if filesystem.exists(path):
            filesystem.remove(path)
