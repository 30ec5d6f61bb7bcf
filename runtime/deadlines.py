"""One heap of deadlines and one loop timer for a whole broker.

An owner of deadlines (the acquisition locks of a share partition, a session, a long poll) is an `Expirable`:
it names its next deadline, and `expire` is called when that has passed. An owner has at most one live entry
here, for any number of deadlines inside it, so the heap grows with the owners and never with the records.

Nothing is removed from the middle of the heap. An entry that was replaced or cancelled stays as a bare number
that refers to no owner. It is dropped when it reaches the top, or when such dead entries outnumber the live
ones.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Protocol

from barnabas.runtime.clock import Clock, MonotonicMs
from barnabas.runtime.logging import get_logger

log = get_logger("deadlines")

_DEAD_ENTRIES_MIN = 64
"""Dead entries that are always tolerated, so that a small heap isn't rebuilt again and again."""

_RETRY_MS = 1
"""Delay before the next expiry, so that an owner whose deadline never moves cannot spin the loop."""


class Expirable(Protocol):
    """An owner of deadlines. Hashed by identity."""

    def next_deadline_ms(self) -> int | None:
        """The next deadline in monotonic milliseconds; None without any."""
        ...

    def expire(self, now_ms: int) -> None:
        """Do all that is due at `now_ms`. Afterwards `next_deadline_ms` is later than that."""
        ...


class Timer(Protocol):
    """A delayed call of the loop."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`loop.call_later`: (seconds, function)."""


class Deadlines:
    """Calls `expire` of each owner when its deadline has passed, on the loop's thread.

    `call_later` is the running loop's, unless a test passes its own.
    """

    def __init__(self, clock: Clock, call_later: CallLater | None = None) -> None:
        self._clock = clock
        self._call_later = call_later
        self._heap: list[tuple[int, int]] = []
        self._owner_by_number: dict[int, Expirable] = {}
        """The owners of the live entries, by the entry's number."""
        self._entry_by_owner: dict[Expirable, tuple[int, int]] = {}
        self._next_number = 0
        self._timer: Timer | None = None
        self._timer_deadline_ms = 0
        self._expiring = False
        self._closed = False

    def __len__(self) -> int:
        """The number of owners that wait."""
        return len(self._entry_by_owner)

    @property
    def entry_count(self) -> int:
        """Entries in the heap, dead ones included. The memory is proportional to it."""
        return len(self._heap)

    def schedule(self, owner: Expirable, deadline_ms: int) -> None:
        """Expire `owner` at `deadline_ms` (monotonic) at the latest.

        A deadline later than the known one changes nothing: at the known one the owner is asked for its next
        deadline again.
        """
        if self._closed:
            return
        entry = self._entry_by_owner.get(owner)
        if entry is not None:
            if entry[0] <= deadline_ms:
                return
            del self._owner_by_number[entry[1]]
        number = self._next_number
        self._next_number = number + 1
        entry = (deadline_ms, number)
        self._entry_by_owner[owner] = entry
        self._owner_by_number[number] = owner
        heapq.heappush(self._heap, entry)
        self._drop_dead_entries()
        self._arm()

    def cancel(self, owner: Expirable) -> None:
        """Forget `owner`; nothing happens if it isn't known."""
        entry = self._entry_by_owner.pop(owner, None)
        if entry is not None:
            del self._owner_by_number[entry[1]]
            self._drop_dead_entries()

    def close(self) -> None:
        """Forget every owner and stop the timer. Later calls of `schedule` do nothing."""
        self._closed = True
        self._heap.clear()
        self._owner_by_number.clear()
        self._entry_by_owner.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_min_ms: int = 0) -> None:
        """Set the loop's timer for the earliest entry, unless it is set early enough or will be set soon."""
        if not self._heap or self._expiring:
            return
        deadline_ms = self._heap[0][0]
        if self._timer is not None:
            if self._timer_deadline_ms <= deadline_ms:
                return
            self._timer.cancel()
        delay_ms = max(deadline_ms - self._clock.monotonic_ms(), delay_min_ms)
        call_later = self._call_later or asyncio.get_running_loop().call_later
        self._timer = call_later(delay_ms / 1000, self._on_timer)
        self._timer_deadline_ms = deadline_ms

    def _on_timer(self) -> None:
        self._timer = None
        self._expiring = True
        now_ms = self._clock.monotonic_ms()
        try:
            for owner in self._take_due(now_ms):
                self._expire(owner, now_ms)
        finally:
            self._expiring = False
            self._arm(_RETRY_MS)

    def _take_due(self, now_ms: MonotonicMs) -> list[Expirable]:
        """Remove the entries that are due; returns their owners in the order of their deadlines."""
        due: list[Expirable] = []
        while self._heap and self._heap[0][0] <= now_ms:
            owner = self._owner_by_number.pop(heapq.heappop(self._heap)[1], None)
            if owner is not None:
                del self._entry_by_owner[owner]
                due.append(owner)
        return due

    def _expire(self, owner: Expirable, now_ms: MonotonicMs) -> None:
        """Expire one owner. An exception is a bug of ours and must not delay the other owners."""
        try:
            deadline_ms = owner.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                owner.expire(now_ms)
                deadline_ms = owner.next_deadline_ms()
        except Exception:
            log.exception("deadline failed", owner=type(owner).__name__)
            return
        if deadline_ms is not None:
            self.schedule(owner, deadline_ms)

    def _drop_dead_entries(self) -> None:
        """Rebuild the heap once most entries are dead: constant work per entry on average."""
        live_count = len(self._owner_by_number)
        if len(self._heap) - live_count > live_count + _DEAD_ENTRIES_MIN:
            self._heap = list(self._entry_by_owner.values())
            heapq.heapify(self._heap)
