"""How long something is tried again: growing pauses, and an end to them."""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.client.backoff import Backoff

_MS_PER_SECOND: Final = 1000


class Patience:
    """The tries of one thing: `pause` after each failure, `reset` after each success."""

    def __init__(self, backoff: Backoff, give_up_ms: int) -> None:
        """`give_up_ms` is how long failures may follow each other."""
        self._backoff = backoff
        self._give_up_ms = give_up_ms
        self._failing_since: float | None = None
        self._alike: tuple[type[Exception], float] | None = None
        """The last failure's kind, and since when there was no other."""

    async def pause(self, error: Exception, *, give_up_ms: int | None = None) -> None:
        """Wait before the next try. Raises `error` once there have been failures for too long.

        `give_up_ms` is a shorter bound for errors that are less likely to pass. It begins with the first
        error of this kind that follows another: how long a broker was away says nothing about its answers.
        """
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        if self._alike is None or self._alike[0] is not type(error):
            self._alike = type(error), now
        end = self._failing_since + self._give_up_ms / _MS_PER_SECOND
        if give_up_ms is not None:
            end = min(end, self._alike[1] + give_up_ms / _MS_PER_SECOND)
        pause = self._backoff.next_ms() / _MS_PER_SECOND
        if now + pause > end:
            raise error
        await asyncio.sleep(pause)

    def reset(self) -> None:
        self._failing_since = self._alike = None
        self._backoff.reset()
