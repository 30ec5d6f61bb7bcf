"""Long computations in a thread: large messages are decoded and encoded there.

The interpreter runs one thread at a time and switches between them every few milliseconds
(`sys.getswitchinterval`). So the loop waits that long for its turn, for a computation of any length; long
loops of compiled modules give way by themselves (`protocol.thread_switch`). With several threads it would
wait several times as long. Therefore one computation runs at a time, and the others wait in the order of
their arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.runtime.worker_threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class LongWork:
    """The queue for the thread. Used on the loop's thread only."""

    __slots__ = ("_lock", "_threads")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of `function`, or raises its error. It must not touch objects of the loop."""
        async with self._lock:
            return await self._threads.run(function, *args, **kwargs)

    async def run_if(self, is_long: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same if `is_long`; otherwise `function` is called at once, without the thread."""
        return await self.run(function, *args, **kwargs) if is_long else function(*args, **kwargs)
