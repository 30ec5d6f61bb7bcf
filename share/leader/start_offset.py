"""The search for the start of a share group by `share.auto.offset.reset=by_duration` (KIP-932).

The first fetch decides the start offset, and it is recorded before records are acquired, so that a crash does
not move it. The isolation level plays no part. Other requests are served during the search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.protocol.errors import without_frames
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.reading.offset_lookup import TimedOffset


class StartSearch:
    """The search for the first record that is young enough."""

    def __init__(
        self,
        log: PartitionLog,
        duration_ms: int,
        wall_ms: int,
        work: StepwiseWork,
        on_done: Callable[[], None],
    ) -> None:
        """`on_done` is called when something can be told."""
        self.duration_ms = duration_ms
        self._log = log
        self._high_watermark = log.high_watermark
        searching = log.offset_for_timestamp(wall_ms - duration_ms, work)
        self._task = asyncio.get_running_loop().create_task(searching)
        self._on_done = on_done
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[TimedOffset | None]) -> None:
        if not task.cancelled():
            task.exception()  # retrieved, because no fetch may ask for it any more
        self._on_done()

    @property
    def is_done(self) -> bool:
        return self._task.done()

    @property
    def found_nothing(self) -> bool:
        """Whether it has ended well, and no record is young enough."""
        task = self._task
        return task.done() and not task.cancelled() and task.exception() is None and task.result() is None

    @property
    def is_outdated(self) -> bool:
        """Whether there was nothing, and there may be something by now: records have come. Those that there
        were only grow older.
        """
        return self.found_nothing and self._log.high_watermark != self._high_watermark

    def start_offset(self) -> int | None:
        """The offset, once it is done; None if no record is young enough. Raises StorageError."""
        error = self._task.exception()
        if isinstance(error, StorageError):
            raise without_frames(error)
        found = self._task.result()
        return None if found is None else max(found[1], self._log.log_start_offset)
