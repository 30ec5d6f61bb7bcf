"""How long an operation is retried: growing pauses, and a time limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import random
from typing import Final

from barnabas.client.waiting.backoff import Backoff

_MS_PER_SECOND: Final = 1000


class Patience:
    """The retries of one operation: `pause` after each failure, `reset` after each success."""

    def __init__(self, backoff: Backoff, give_up_ms: int) -> None:
        """`give_up_ms` limits how long failures may follow each other."""
        self._backoff = backoff
        self._give_up_ms = give_up_ms
        self._failing_since: float | None = None
        self._alike: tuple[type[Exception], float] | None = None
        """The type of the last failure, and the time since which all failures had this type."""

    async def pause(self, error: Exception, *, give_up_ms: int | None = None) -> None:
        """Wait before the next try. Raises `error` once failures have lasted too long.

        `give_up_ms` is a shorter limit for errors that are less likely to be temporary. It counts from the
        first error of this type in a row, because the time during which a broker was away is no measure of
        its answers.
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


@dataclass(frozen=True, kw_only=True)
class Retries:
    """The duration of retries, in milliseconds."""

    backoff_ms: int = 100
    backoff_max_ms: int = 1_000
    give_up_ms: int = 60_000

    def patience(self) -> Patience:
        """A new `Patience` for one operation."""
        return Patience(Backoff(self.backoff_ms, self.backoff_max_ms, random), self.give_up_ms)
