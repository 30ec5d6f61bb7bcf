"""A wait that ends at a time, or earlier."""

from __future__ import annotations

from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines


class Pause:
    """One wait, driven by the broker's deadlines (`deadlines.Expirable`)."""

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._ended: Completion[None] = Completion()
        self._until_ms = 0

    async def wait(self, duration_ms: int) -> None:
        """Return after this time (monotonic), or when `end` is called."""
        self._until_ms = self._clock.monotonic_ms() + duration_ms
        self._deadlines.schedule(self, self._until_ms)
        try:
            await self._ended
        finally:
            self._deadlines.cancel(self)

    def end(self) -> None:
        """End the wait now."""
        if not self._ended.done:
            self._ended.complete(None)

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        return None if self._ended.done else self._until_ms

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`."""
        self.end()
