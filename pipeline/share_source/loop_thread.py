"""An asyncio loop in a thread, for a synchronous caller.

Spark calls a source's reader from one thread, with any time between two calls; heartbeats and renewals go on
here meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

_Result = TypeVar("_Result")

STOP_SECONDS: Final = 5.0
"""How long the end may take; the thread doesn't keep the process alive."""


class LoopThread:
    """A running loop. `stop` it once."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Result], timeout_s: float | None = None) -> _Result:
        """Runs `work` on the loop; returns its result or raises its error. Raises `TimeoutError`."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except (TimeoutError, KeyboardInterrupt, SystemExit, CancelledError):
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the loop, and cancels its tasks."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._end()

    def _end(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
