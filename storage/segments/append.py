"""The ticket of an append: what a caller holds while its records are on their way into the log.

Appends usually finish before their ticket is handed out, so a ticket is a plain object that can be asked,
called back and awaited, and costs no future unless somebody awaits it unfinished. Used on the loop's thread
only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

_logger = logging.getLogger(__name__)


class Append:
    """One append. Done means that its bytes are as durable as `log.flush` says, or that `error` is set.

    `base_offset` and `last_offset` (inclusive) are the records', -1 until done. For a batch that the producer
    had sent before they are those it got then. `log_append_time_ms` is -1 unless the topic has log append
    time, or the batch was a duplicate.
    """

    __slots__ = (
        "_callbacks",
        "base_offset",
        "done",
        "error",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None
        self.base_offset = -1
        self.last_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1
        self._callbacks: list[Callable[[Append], None]] | None = None

    def add_done_callback(self, callback: Callable[[Append], None]) -> None:
        """Calls `callback(self)` once, synchronously when the append is done: at once if it is."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def complete(self) -> None:
        """For the appender: the outcome's fields are set.

        A callback that raises is a bug of ours, logged and no reason to leave anybody else waiting.
        """
        assert not self.done, "an append completes once"
        self.done = True
        callbacks = self._callbacks
        if callbacks is not None:
            self._callbacks = None
            for callback in callbacks:
                try:
                    callback(self)
                except Exception:
                    _logger.exception("A callback of a finished append failed")

    def fail(self, error: Exception) -> None:
        """For the appender: nothing was appended, as far as anyone may rely on."""
        self.error = error
        self.complete()

    def __await__(self) -> Generator[asyncio.Future[None], None, Append]:
        """Answers the ticket itself, or raises its error; suspends only while the append is under way."""
        if not self.done:
            finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.add_done_callback(lambda _: None if finished.done() else finished.set_result(None))
            yield from finished
        if self.error is not None:
            raise self.error
        return self


class ControlBatch(NamedTuple):
    """A control batch of one share group's state, ready to be written, and what the share index says of it.

    `data` is the whole batch at the offset and leader epoch that its encoder was given; `kind` the control
    type (5 checkpoint, 6 delta), or 0 for the mark of what was cleaned away, which is no group's.
    """

    data: bytes
    last_offset_delta: int
    group_id: str
    kind: int
    tombstone: bool


EncodeControl = Callable[[int, int], ControlBatch | Sequence[ControlBatch]]
"""(base offset, leader epoch) -> the batches from there on; called when it is their turn to be written."""
