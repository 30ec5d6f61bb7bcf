"""The driver's side of a source, for a caller that isn't asynchronous: batches on a loop in a thread.

Nothing is opened before the first call. The process in which Spark runs a reader ends by SIGTERM when a query
is stopped: that is made an orderly end here, so that the group is left at once and not by a timeout.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

from barnabas.pipeline.share_source.batches import ShareBatches
from barnabas.pipeline.share_source.loop_thread import LoopThread
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.settings import ShareSettings

log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 10.0
"""How long leaving the group may take; after that the broker finds out by itself."""

_Result = TypeVar("_Result")


class ShareDriver:
    """One query's batches. `stop` it once; every call is made from one thread."""

    def __init__(self, settings: ShareSettings) -> None:
        self._batches = ShareBatches(settings)
        self._thread: LoopThread | None = None

    @property
    def metrics(self) -> ShareMetrics:
        return self._batches.metrics

    def prepare_available_now(self) -> None:
        """See `ShareBatches`."""
        self._run(self._batches.prepare_available_now())

    def next_offset(self, start: ShareOffset, count_max: int | None) -> ShareOffset | None:
        """See `ShareBatches`."""
        return self._run(self._batches.next_offset(start, count_max))

    def begin_batch(self) -> None:
        """See `ShareBatches`."""
        self._batches.begin_batch()

    def stop(self) -> None:
        """Leave the group, as far as that is possible at once, and end everything."""
        if self._thread is None:
            return
        with _in_peace():
            thread, self._thread = self._thread, None
            try:
                # The second bound is for a loop that does nothing any more.
                thread.run(asyncio.wait_for(self._batches.close(), CLOSE_SECONDS), CLOSE_SECONDS + 1)
            except TimeoutError:
                log.info("The group was not left in %.0f s", CLOSE_SECONDS)
            finally:
                thread.stop()

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._thread is None:
            _end_orderly_on_sigterm()
            self._thread = LoopThread("barnabas-kafka-share")
        return self._thread.run(work)


def _end_orderly_on_sigterm() -> None:
    """Let SIGTERM unwind the stack, unless somebody else has a use for it."""
    is_ours = threading.current_thread() is threading.main_thread()
    if is_ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)


@contextmanager
def _in_peace() -> Generator[None]:
    """A SIGTERM must not cut short what it is to bring about. Afterwards the signal is what it was first."""
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and signal.getsignal(signal.SIGTERM) in {_leave, _is_leaving}):
        yield
        return
    signal.signal(signal.SIGTERM, _is_leaving)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _frame: FrameType | None) -> None:
    """Spark sends SIGTERM, closes the reader's connection, and sends SIGTERM again: that one comes while the
    first one unwinds the stack, and must not do so once more."""
    signal.signal(signal.SIGTERM, _is_leaving)
    sys.exit(128 + number)


def _is_leaving(_number: int, _frame: FrameType | None) -> None:
    """What comes while the group is being left changes nothing."""
