"""Looks into many records, in steps: each step in a thread, the loop's turn in between.

Python runs one thread at a time, so a long computation in a thread holds up the loop nearly as much as one on
it. So a thread does a step, which takes some milliseconds at most, and comes back before the next.

Bounds: one at a time, since a few bytes may unpack to hundreds of megabytes; the others wait in the order in
which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from barnabas.runtime.worker_threads import Threads

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields after each step and returns what came of it. It must touch nothing of the loop's."""


class StepwiseWork:
    """What waits for its turn. To be used on the loop's thread."""

    __slots__ = ("_lock", "_threads")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def run(self, steps: Steps[T]) -> T:
        """What came of the work; raises what it raises."""
        async with self._lock:
            while True:
                result = await self._threads.run(_step, steps)
                if result is not None:
                    return result[0]


def do_at_once(steps: Steps[T]) -> T:
    """What came of the work, done here and now: for what is known to be small."""
    while True:
        result = _step(steps)
        if result is not None:
            return result[0]


def _step(steps: Steps[T]) -> tuple[T] | None:
    """The result, once there is one."""
    try:
        next(steps)
    except StopIteration as end:
        return (end.value,)
    return None
