"""The deadlines of a whole broker, with one loop timer.

Everything that happens at a time (an acquisition lock that expires, a session, a long poll) has an owner, an
`Expirable`: it names its next deadline and is called when that has passed. An owner has at most one deadline
here, however many it keeps inside, so the heap grows with the owners and never with the records.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.runtime.clock import Clock
from barnabas.runtime.deadline_table import DeadlineTable
from barnabas.runtime.logging import get_logger

log = get_logger("deadlines")

_RETRY_MS: Final = 1
"""Earliest next expiry, so that an owner whose deadline never moves cannot spin the loop."""


class Expirable(Protocol):
    """Owner of deadlines. Hashed by identity."""

    def __hash__(self) -> int: ...

    def next_deadline_ms(self) -> int | None:
        """When `expire` is next due in monotonic milliseconds; None without a deadline."""
        ...

    def expire(self, now_ms: int) -> None:
        """Do everything that is due at `now_ms`; afterwards `next_deadline_ms` is later than `now_ms`."""
        ...


class Timer(Protocol):
    """A delayed call of the loop."""

    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Timer]
"""`loop.call_later`: seconds, callback."""


class Deadlines:
    """Calls `expire` of each owner when its deadline has passed, on the loop's thread.

    `call_later` is the running loop's unless a test passes its own.
    """

    def __init__(self, clock: Clock, call_later: CallLater | None = None) -> None:
        self._clock = clock
        self._call_later = call_later
        self._owners = DeadlineTable[Expirable]()
        self._timer: Timer | None = None
        self._timer_deadline_ms = 0
        self._expiring = False
        self._closed = False

    def __len__(self) -> int:
        """The number of owners with a deadline."""
        return len(self._owners)

    @property
    def heap_size(self) -> int:
        """Places in the heap, stale ones included: memory grows with it."""
        return self._owners.heap_size

    def schedule(self, owner: Expirable, deadline_ms: int) -> None:
        """Expire `owner` at `deadline_ms` (monotonic) at the latest.

        A later deadline than the known one changes nothing: the owner is asked again at the earlier one.
        """
        if not self._closed and self._owners.bring_forward(owner, deadline_ms):
            self._arm()

    def cancel(self, owner: Expirable) -> None:
        """Forget `owner`; does nothing if it is not known."""
        self._owners.cancel(owner)

    def close(self) -> None:
        """Forget every owner and stop the timer. Later calls of `schedule` do nothing."""
        self._closed = True
        self._owners.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_min_ms: int = 0) -> None:
        """Set the loop's timer for the earliest deadline, unless it is early enough or about to be set."""
        if self._expiring:
            return
        deadline_ms = self._owners.next_deadline_ms()
        if deadline_ms is None:
            return
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
            for owner in self._owners.expire(now_ms):
                self._expire(owner, now_ms)
        finally:
            self._expiring = False
            self._arm(_RETRY_MS)

    def _expire(self, owner: Expirable, now_ms: int) -> None:
        """Expire one owner. Its failure is a defect, and must not delay the others."""
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
