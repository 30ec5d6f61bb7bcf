"""One heap of deadlines and one loop timer for a whole broker.

Whatever has to happen at a time (an acquisition lock that expires, a session, a long poll) is an `Expirable`:
it names its next deadline and is told when that has passed. An owner has at most one live entry here, however
many deadlines it keeps inside, so the heap grows with the owners and never with the records.

Nothing is removed from the middle of the heap: an entry that was replaced or cancelled stays behind as a bare
ticket number, holds no owner, and is dropped when it reaches the top or when such entries outnumber the live
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
"""Dead entries tolerated in any case, so that a small heap isn't rebuilt over and over."""

_RETRY_MS = 1
"""Earliest next expiry, so that an owner whose deadline never moves cannot spin the loop."""


class Expirable(Protocol):
    """Owner of deadlines. Hashed by identity."""

    def next_deadline_ms(self) -> int | None:
        """When `expire` is next due in monotonic milliseconds, or None if nothing is waited for."""
        ...

    def expire(self, now_ms: int) -> None:
        """Do all that is due at `now_ms`; `next_deadline_ms` lies behind it afterwards."""
        ...


class Timer(Protocol):
    """What the loop returns for a delayed call."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`loop.call_later`: seconds, callback."""


class Deadlines:
    """Calls `expire` of each owner when its deadline has passed, on the loop's thread.

    `call_later` is the running loop's unless a test brings its own.
    """

    def __init__(self, clock: Clock, call_later: CallLater | None = None) -> None:
        self._clock = clock
        self._call_later = call_later
        self._heap: list[tuple[int, int]] = []
        self._owner_by_ticket: dict[int, Expirable] = {}
        self._entry_by_owner: dict[Expirable, tuple[int, int]] = {}
        self._next_ticket = 0
        self._timer: Timer | None = None
        self._timer_deadline_ms = 0
        self._expiring = False
        self._closed = False

    def __len__(self) -> int:
        """How many owners wait."""
        return len(self._entry_by_owner)

    @property
    def entry_count(self) -> int:
        """Entries in the heap, dead ones included: what the memory is in proportion to."""
        return len(self._heap)

    def schedule(self, owner: Expirable, deadline_ms: int) -> None:
        """Have `owner` expired at `deadline_ms` (monotonic) at the latest.

        A later deadline than the one already known changes nothing: at the earlier one the owner is asked
        again.
        """
        if self._closed:
            return
        entry = self._entry_by_owner.get(owner)
        if entry is not None:
            if entry[0] <= deadline_ms:
                return
            del self._owner_by_ticket[entry[1]]
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        entry = (deadline_ms, ticket)
        self._entry_by_owner[owner] = entry
        self._owner_by_ticket[ticket] = owner
        heapq.heappush(self._heap, entry)
        self._drop_dead_entries()
        self._arm()

    def cancel(self, owner: Expirable) -> None:
        """Forget `owner`; nothing happens if it isn't known."""
        entry = self._entry_by_owner.pop(owner, None)
        if entry is not None:
            del self._owner_by_ticket[entry[1]]
            self._drop_dead_entries()

    def close(self) -> None:
        """Forget every owner and stop the timer. Later calls of `schedule` do nothing."""
        self._closed = True
        self._heap.clear()
        self._owner_by_ticket.clear()
        self._entry_by_owner.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_min_ms: int = 0) -> None:
        """Set the loop's timer for the earliest entry, unless it is set early enough or about to be set."""
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
        """Remove the entries that are due; the owners in order of their deadlines."""
        due: list[Expirable] = []
        while self._heap and self._heap[0][0] <= now_ms:
            owner = self._owner_by_ticket.pop(heapq.heappop(self._heap)[1], None)
            if owner is not None:
                del self._entry_by_owner[owner]
                due.append(owner)
        return due

    def _expire(self, owner: Expirable, now_ms: MonotonicMs) -> None:
        """Expire one owner; its failure is our bug, and must not keep the others waiting."""
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
        """Rebuild the heap once most of it is dead: constant work per entry on average."""
        live_count = len(self._owner_by_ticket)
        if len(self._heap) - live_count > live_count + _DEAD_ENTRIES_MIN:
            self._heap = list(self._entry_by_owner.values())
            heapq.heapify(self._heap)
