"""The policy *when* a record may go: at once, or when it is due.

A record waits after a failed delivery (back-off, or a delay that its consumer asks for; docs/decisions/0028),
or before its first one, because a header of it asks for that: then it is *delayed* (docs/decisions/0031).
While no record waits, the policy is `AT_ONCE`. The first one that does gives its window `Waits`.

There is no timer per record: the first due time is the deadline of the whole share-partition. Nothing is
recorded when it is reached, because a due time that has passed means the same as none. A due time is
wall-clock time, because it must survive a restart, and all other times are monotonic. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from barnabas.protocol.committed_ranges import merged
from barnabas.protocol.delivery_state import Due
from barnabas.share.partition.limits import RetryBackoff

Span = tuple[int, int]
"""First and last offset, both inclusive."""

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

RANGES_MAX: Final = 1_000
"""With more ranges of available records, they become one."""

_SWOLLEN_MIN: Final = 1_024
"""A shorter queue is never built anew."""


def no_jitter() -> float:
    """Shortens no delay."""
    return 0.0


def due_at(wall_ms: int) -> Due:
    """Due at this wall-clock time, rounded up."""
    return Due(-(-wall_ms // DUE_STEP_MS) * DUE_STEP_MS)


class DueTimes:
    """Computes the due times of one share-partition.

    After delivery n the delay is base * multiplier^(n - 1), at most max, shortened by a random part of it up
    to `jitter`.
    """

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


class Waiting(NamedTuple):
    """Neighbouring records with one due time; both offsets are inclusive."""

    due_ms: int
    first_offset: int
    last_offset: int


class AvailableRanges:
    """All available records that do not wait lie in these ranges; other records may lie there, too.

    Usually one range from the first to the last available record is good enough. But thousands of delayed
    records may lie between a record that has just become due and the newest ones, and no fetch should look at
    all of them.
    """

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[Span] = ()) -> None:
        self._ranges: list[Span] = list(ranges)

    def add(self, first_offset: int, last_offset: int) -> None:
        """Records of this range have become available."""
        self._ranges.append((first_offset, last_offset))
        if len(self._ranges) > RANGES_MAX:
            self._merge()
        if len(self._ranges) > RANGES_MAX:
            self._ranges = [(self._ranges[0][0], self._ranges[-1][1])]

    def between(self, first_offset: int, last_offset: int) -> list[Span]:
        """The ranges that reach into this one, ascending and disjoint."""
        self._merge()
        return [
            (first, last) for first, last in self._ranges if first <= last_offset and first_offset <= last
        ]

    def forget_below(self, offset: int) -> None:
        """No available record lies below `offset`."""
        self._ranges = [(first, last) for first, last in self._ranges if last >= offset]

    def _merge(self) -> None:
        self._ranges = [*merged(self._ranges)]


class WaitQueue:
    """The waiting records in the order of their due times: a heap of entries, with wall-clock times.

    An entry is a hint: its records may have become available, or final, before they were due. So the ends of
    waits cost as much as the records that are due, however many others wait.
    """

    __slots__ = ("_built_count", "_entries", "first_due_ms")

    def __init__(self) -> None:
        self._entries: list[Waiting] = []
        self._built_count = 0
        self.first_due_ms: int | None = None
        """No waiting record is due before; None if no record waits."""

    @property
    def is_swollen(self) -> bool:
        """Whether many entries may be stale, so that the queue has to be built anew."""
        return len(self._entries) > max(_SWOLLEN_MIN, 2 * self._built_count)

    def add(self, waiting: Waiting) -> None:
        heappush(self._entries, waiting)
        self._note_first()

    def build(self, waiting: Iterable[Waiting]) -> None:
        """Replaces all entries."""
        self._entries = list(waiting)
        heapify(self._entries)
        self._built_count = len(self._entries)
        self._note_first()

    def take_due(self, wall_ms: int) -> list[Waiting]:
        """Removes and returns the entries that are due at this time."""
        due: list[Waiting] = []
        while self._entries and self._entries[0].due_ms <= wall_ms:
            due.append(heappop(self._entries))
        self._note_first()
        return due

    def clear(self) -> None:
        self._entries.clear()
        self.first_due_ms = None

    def _note_first(self) -> None:
        self.first_due_ms = self._entries[0].due_ms if self._entries else None


class Waits(WaitQueue):
    """The waiting records of one window."""

    __slots__ = ("available", "delayed_count", "has_delayed")

    def __init__(self) -> None:
        super().__init__()
        self.delayed_count = 0
        """The records that wait for their first delivery."""
        self.has_delayed = False
        """Whether there were any since the window was last without a gap."""
        self.available = AvailableRanges()
        """As long as `has_delayed`: more exactly than the window where available records may lie."""

    def note_none_delayed(self, *, has_gaps: bool) -> None:
        """No record is delayed any more; `has_gaps` if final records lie between those that are not."""
        self.has_delayed = has_gaps
        if not has_gaps:
            self.available = AvailableRanges()


AT_ONCE: Final = Waits()
"""No record waits. It is shared by all windows; `Window.note_waiting` replaces it."""
