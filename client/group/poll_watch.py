"""Watches whether the application still polls (KIP-62): the time since it last asked for records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas.client.waiting.signal import Signal

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000


class PollWatch:
    """Tells when no poll has been under way for `interval_ms`. `run` it in a task."""

    def __init__(self, interval_ms: int, on_late: Callable[[], bool]) -> None:
        """`on_late` is called once, and returns whether the consumer leaves; the next poll begins anew."""
        self._interval_ms = interval_ms
        self._on_late = on_late
        self._loop = asyncio.get_running_loop()
        self._polls = 0
        self._last_poll_at = self._loop.time()
        self._is_late = False
        self._news = Signal()

    @property
    def idle_seconds(self) -> float:
        """The time since the last poll ended; 0 while one is under way."""
        return 0.0 if self._polls else self._loop.time() - self._last_poll_at

    def begin(self) -> None:
        """A poll begins."""
        self._polls += 1
        if self._is_late:
            self._is_late = False
            self._news.set()

    def end(self) -> None:
        """A poll has ended."""
        self._polls -= 1
        self._last_poll_at = self._loop.time()

    def note_poll(self) -> None:
        """A poll has returned without waiting. It is for an application that has not been late."""
        self._last_poll_at = self._loop.time()

    async def run(self, group_id: str) -> None:
        """Watch until cancelled."""
        while True:
            left_ms = self._interval_ms - self.idle_seconds * _MS_PER_SECOND
            if left_ms > 0:
                await asyncio.sleep(left_ms / _MS_PER_SECOND)
                continue
            self._is_late = True
            if self._on_late():
                log.warning(
                    "The application has not polled for max_poll_interval_ms (%d ms): the consumer leaves "
                    "the group %s until the next poll. Poll more often, or set a longer interval.",
                    self._interval_ms,
                    group_id,
                )
            self._news.clear()
            await self._news.wait(None)
