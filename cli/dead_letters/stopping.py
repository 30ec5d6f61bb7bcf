"""SIGINT and SIGTERM: a transaction is finished, other work is cancelled. A second signal cancels all."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager


class StopRequest:
    """The request of signals that the current task ends."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self.is_asked = False
        self._task = task
        self._is_finishing = False

    def note(self) -> None:
        """One more signal."""
        if self.is_asked or not self._is_finishing:
            self._task.cancel()
        self.is_asked = True

    @contextmanager
    def finishing(self) -> Generator[None]:
        """Work that the first signal does not cancel. Raises `CancelledError` behind it, if there was one."""
        self._is_finishing = True
        try:
            yield
        finally:
            self._is_finishing = False
        if self.is_asked:
            raise asyncio.CancelledError


@contextmanager
def stop_request() -> Generator[StopRequest]:
    """While the block runs, signals go to the request. A cancelled block ends without an error."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "called in a task"
    request = StopRequest(task)
    signals = (signal.SIGINT, signal.SIGTERM)
    for signal_number in signals:
        loop.add_signal_handler(signal_number, request.note)
    try:
        yield request
    except asyncio.CancelledError:
        if not request.is_asked:
            raise
    finally:
        for signal_number in signals:
            loop.remove_signal_handler(signal_number)
