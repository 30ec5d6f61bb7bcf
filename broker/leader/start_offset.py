"""Where a share group begins in a partition that it has never read (KIP-932, `share.auto.offset.reset`).

Decided at the first fetch and recorded at once, so that a crash doesn't move it. Isolation plays no part in
it. What `by_duration` asks for is searched for while others are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.storage.errors import StorageError, raised_anew
from barnabas.storage.log import PartitionLog
from barnabas.storage.stepwise import StepwiseWork


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
        self._task.add_done_callback(lambda _: on_done())

    @property
    def is_done(self) -> bool:
        return self._task.done()

    @property
    def is_outdated(self) -> bool:
        """Whether there was nothing, and there may be something by now: records have come. Those that there
        were only grow older.
        """
        if not self.is_done or self._log.high_watermark == self._high_watermark:
            return False
        return self._task.cancelled() or self._task.exception() is not None or self._task.result() is None

    def start_offset(self) -> int | None:
        """The offset, once it is done; None if no record is young enough. Raises StorageError."""
        try:
            found = self._task.result()
        except StorageError as error:
            raise raised_anew(error) from error
        return None if found is None else max(found[1], self._log.log_start_offset)
