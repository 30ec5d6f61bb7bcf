"""Looks at share-partitions from which no member fetches: repeated, and one at a time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import StorageError

log = get_logger("share")


class Looks(ABC):
    """The looks of one kind, on the loop's thread (`deadlines.Expirable`), until `close`."""

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._next_at_ms: int | None = None
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def _pause_ms(self) -> int | None:
        """The time from the beginning of one look to the next, asked when one begins; None to end them."""

    @abstractmethod
    async def _look(self) -> None:
        """One look."""

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        return self._next_at_ms

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`: begins a look, unless the last one is still under way."""
        pause_ms = self._pause_ms()
        self._next_at_ms = None if pause_ms is None else now_ms + pause_ms
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Stop. A leader that is being loaded stays, and each change of its state is recorded as a whole."""
        self._deadlines.cancel(self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _look_in(self, delay_ms: int) -> None:
        """The next look begins after this time."""
        self._next_at_ms = self._clock.monotonic_ms() + delay_ms
        self._deadlines.schedule(self, self._next_at_ms)

    async def _try(
        self, step: Callable[[SharePartitionKey], Awaitable[None]], key: SharePartitionKey
    ) -> None:
        """One step of a look, for one share-partition, and then a moment for others."""
        try:
            await step(key)
        except (ApiError, StorageError) as error:
            # A later look tries again; a client that fetches is told the error itself.
            log.debug("a share-partition could not be looked at", group=key.group_id, error=str(error))
        except Exception:
            log.exception("looking at a share-partition failed", group=key.group_id)
        await asyncio.sleep(0)
