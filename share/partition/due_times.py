"""The times at which records are due that are delivered again after a delay (docs/decisions/0028).

After delivery n the delay is base * multiplier^(n - 1), at most max, shortened by a random part of it up to
`jitter`. A due time is wall-clock time, because it must survive a restart, and the core's other times are
monotonic. `ahead_ms`, the difference of the two clocks, converts them. Pure: the random numbers come from a
source that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.protocol.delivery_state import Due
from barnabas.share.partition.limits import RetryBackoff

DUE_STEP_MS: Final = 10
"""Due times are rounded up to multiples of this, so that records that are released one by one are due
together, and a leader looks for due records at most a hundred times a second."""

DELAY_MS_MAX: Final = 86_400_000
"""One day: the upper bound of `share.retry.backoff.max.ms`."""

WAIT_MS_MAX: Final = 7 * 86_400_000
"""Seven days: the longest delay before the first delivery, and the longest wait of a record for it from the
moment when its leader meets it, with any timestamp."""

CLOCK_STEP_MS_MIN: Final = DUE_STEP_MS
"""A smaller change of the difference between the clocks is no step: they are not read at the same moment. A
recorded due time is wrong by less than this, for the next leader after a restart."""

CLOCK_LOOK_MS: Final = 10_000
"""How long it takes at most until a leader with delayed records notices that the wall clock was set."""


def no_jitter() -> float:
    """Shortens no delay."""
    return 0.0


class DueTimes:
    """Computes the due times of one share-partition."""

    __slots__ = ("_random", "ahead_ms")

    def __init__(self, ahead_ms: int = 0, random: Callable[[], float] = no_jitter) -> None:
        """`ahead_ms` is the wall-clock time minus the monotonic time. `random` returns numbers from 0
        (inclusive) to 1 (exclusive).
        """
        self.ahead_ms = ahead_ms
        self._random = random

    def adopt(self, ahead_ms: int) -> int:
        """Takes over the present difference of the clocks. Returns the step of the wall clock if it was set,
        or 0.
        """
        step_ms = self.settled_ahead_ms(ahead_ms) - self.ahead_ms
        self.ahead_ms += step_ms
        return step_ms

    def settled_ahead_ms(self, ahead_ms: int) -> int:
        """The present difference of the clocks, without the small changes that come from reading both."""
        return ahead_ms if abs(ahead_ms - self.ahead_ms) >= CLOCK_STEP_MS_MIN else self.ahead_ms

    def wall_ms(self, now_ms: int) -> int:
        """A monotonic time as wall-clock time."""
        return now_ms + self.ahead_ms

    def monotonic_ms(self, due_ms: int) -> int:
        """A wall-clock time as monotonic time."""
        return due_ms - self.ahead_ms

    def after_failure(self, backoff: RetryBackoff, delivery_count: int, now_ms: int) -> Due | None:
        """When a record is due whose delivery number `delivery_count` has failed at `now_ms` (monotonic);
        None if it is available at once.
        """
        if not backoff.base_ms:
            return None
        delay_ms = backoff.base_ms * backoff.multiplier ** (delivery_count - 1)
        delay_ms = min(delay_ms, backoff.max_ms) * (1 - backoff.jitter * self._random())
        return self.after(max(round(delay_ms), 1), now_ms)

    def after(self, delay_ms: int, now_ms: int) -> Due | None:
        """When a record is due that waits for this long from `now_ms` (monotonic); None without a wait."""
        return due_at(self.wall_ms(now_ms) + delay_ms) if delay_ms else None


def due_at(wall_ms: int) -> Due:
    """Due at this wall-clock time, rounded up."""
    return Due(-(-wall_ms // DUE_STEP_MS) * DUE_STEP_MS)
