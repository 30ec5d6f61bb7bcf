"""The driver's side of a source, for a synchronous caller: batches on a loop in a thread.

It opens nothing before the first call. When a query is stopped, Spark ends the reader's process by SIGTERM;
the query then leaves the group at once, and not by a timeout.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from barnabas.pipeline.share_source.batches import ShareBatches
from barnabas.pipeline.share_source.loop_thread import LoopThread
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.settings import ShareSettings
from barnabas.pipeline.share_source.sigterm import ignoring_sigterm, unwind_on_sigterm

log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 10.0
"""How long leaving the group may take; after that, the broker removes the member by its timeout."""

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

    def begin_batch(self, end: ShareOffset) -> ShareOffset:
        """See `ShareBatches`."""
        return self._run(self._batches.begin_batch(end))

    def stop(self) -> None:
        """Leaves the group, if that is possible in time, and ends everything."""
        if self._thread is None:
            return
        with ignoring_sigterm():
            atexit.unregister(self.stop)
            thread, self._thread = self._thread, None
            try:
                # The second bound is for a loop that hangs.
                thread.run(asyncio.wait_for(self._batches.close(), CLOSE_SECONDS), CLOSE_SECONDS + 1)
            except TimeoutError:
                log.info("The group was not left in %.0f s", CLOSE_SECONDS)
            finally:
                thread.stop()

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._thread is None:
            unwind_on_sigterm()
            # Otherwise the signal could interrupt a caller that is about to stop the driver.
            atexit.register(self.stop)
            self._thread = LoopThread("barnabas-kafka-share")
        return self._thread.run(work)
