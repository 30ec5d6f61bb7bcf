"""The threads in which blocking calls run, so that the event loop goes on meanwhile.

All of them are started together, at the first call. A thread that is started later needs memory that the
process may not get at that time, and the write that needs the thread would fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier
from typing import Final, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WORKER_THREADS: Final = min(32, (os.cpu_count() or 1) + 4)
"""The number that asyncio would start; most of them wait for a disk."""


class Threads(Protocol):
    """Runs blocking calls outside the loop's thread; a `FileSystem` does. A simulation has its own."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of `function`, or raises its error."""
        ...


@cache
def worker_threads() -> ThreadPoolExecutor:
    """The threads of this process. Raises RuntimeError if the system does not allow that number."""
    threads = ThreadPoolExecutor(WORKER_THREADS, thread_name_prefix="barnabas")
    all_run = Barrier(WORKER_THREADS)
    try:
        for started in [threads.submit(all_run.wait) for _ in range(WORKER_THREADS)]:
            started.result()
    except RuntimeError:
        all_run.abort()
        raise
    return threads
