"""Work on many records, in steps: each step runs in a thread, and the loop has its turn in between.

Python runs one thread at a time, so a long computation in a thread delays the loop nearly as much as one on
the loop's thread. A step takes some milliseconds at most.

Bounds: one computation at a time, because a few bytes may decompress to hundreds of megabytes; the others
wait in the order of their arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeVar

from barnabas.runtime.worker_threads import Threads

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields after each step and returns its result. It must not touch objects of the loop."""


class StepwiseWork:
    """The queue for the thread. Used on the loop's thread only."""

    __slots__ = ("_lock", "_threads")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def run(self, steps: Steps[T]) -> T:
        """The result of the work; raises its error."""
        async with self._lock:
            while True:
                result = await self._threads.run(_step, steps)
                if result is not None:
                    return result[0]


def do_at_once(steps: Steps[T]) -> T:
    """The result of the work, which is done in this call: for work that is known to be small."""
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
