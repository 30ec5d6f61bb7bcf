"""Where a share group begins in a partition that it has never read (KIP-932, `share.auto.offset.reset`).

Decided at the first fetch and recorded at once, so that a crash doesn't move it. Isolation plays no part in
it. What `by_duration` asks for is searched for while others are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.errors import StorageError, raised_anew
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
            task.exception()  # looked at, though by then nobody may ask
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
        try:
            found = self._task.result()
        except StorageError as error:
            raise raised_anew(error) from error
        return None if found is None else max(found[1], self._log.log_start_offset)
