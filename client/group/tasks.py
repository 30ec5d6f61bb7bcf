"""The background tasks of one client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any


class Tasks:
    """Tasks that end with their client."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        """`on_failure` is called with the error of a task that failed."""
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        return task

    async def cancel(self, tasks: Collection[asyncio.Task[None]] | None = None) -> None:
        """Cancel these tasks, or all, and wait for their ends."""
        ending = list(self._tasks if tasks is None else tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)
