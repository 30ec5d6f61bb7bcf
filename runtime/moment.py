"""One moment by both clocks, and the monotonic times of what records tell.

A duration is measured by the monotonic clock, so that setting the wall clock neither shortens nor lengthens
it. A monotonic time means nothing to the next process, so records have times of day. Only when records of an
earlier process are loaded does the wall clock say how much of a duration has passed. Pure.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

MonotonicOf: TypeAlias = Callable[[int], int]
"""From a time of day in a record to its monotonic time: `Moment.monotonic_of` for a record that is loaded,
`written_at` for one that this process has written."""


class Moment(NamedTuple):
    """The monotonic time, which measures durations, and the time of day, which records store."""

    now_ms: int
    wall_ms: int

    def monotonic_of(self, recorded_ms: int) -> int:
        """The monotonic time of an earlier time of day; it may be negative.

        A time in the future counts as this moment, because the wall clock was set back since then.
        """
        return self.now_ms - max(self.wall_ms - recorded_ms, 0)


def written_at(now_ms: int) -> MonotonicOf:
    """The times in a record that is written at `now_ms` (monotonic), even if the wall clock is being set."""
    return lambda _: now_ms
