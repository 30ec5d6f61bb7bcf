"""Long computations in a thread: large messages are read and written there.

The interpreter runs one thread at a time and changes between them every few milliseconds
(`sys.getswitchinterval`). So the loop waits that long for its turn, however long the computation takes. It
would wait several times as long behind several threads: one computation runs at a time, and the others wait
in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.runtime.worker_threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class LongWork:
    """What waits for the thread. To be used on the loop's thread."""

    __slots__ = ("_lock", "_threads")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `function` returns; raises what it raises. It must touch nothing of the loop's."""
        async with self._lock:
            return await self._threads.run(function, *args, **kwargs)

    async def run_if(self, is_long: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, at once and without the thread unless `is_long`."""
        return await self.run(function, *args, **kwargs) if is_long else function(*args, **kwargs)
