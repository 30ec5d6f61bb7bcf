"""How many bytes of requests all connections together may hold (`queued.max.request.bytes`).

Bytes count when they have arrived, not when a client announces them: in the buffer of a large request that is
still being received, then as a whole request until it is answered. Small requests count from the moment that
their handler waits for something.

At the limit, reading pauses:

- A connection with a half-received large request is read from again as soon as there is room.
- Other connections go on until whole requests alone reach the limit. Whole requests end by themselves.
- One half-received request at a time, that of the connection which has waited longest, goes on beyond the
  limit, if it fits beside the whole ones. So half-received requests cannot block each other for ever.
- That one must go on: its connection is closed if less than `PROGRESS_BYTES_MIN` of it arrive in
  `PROGRESS_SECONDS`.

So all requests together hold less than twice the limit: it is no smaller than one request, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.protocol.frame import GROWTH_BYTES_MAX

PROGRESS_SECONDS: Final = 5.0
PROGRESS_BYTES_MIN: Final = 1024 * 1024
"""What must arrive in that time of the request that is received beyond the limit, or all of its rest."""

CallLater = Callable[[float, Callable[[], None]], "Timer"]


class Timer(Protocol):
    """What `loop.call_later` answers."""

    def cancel(self) -> None: ...


class Receiver(Protocol):
    """A connection, as the budget knows it."""

    def room_changed(self) -> None:
        """`RequestShare.may_read` may have another answer."""
        ...

    def cut_off(self, reason: str) -> None:
        """The connection is to be closed: its half-received request keeps others waiting."""
        ...


class RequestShare:
    """What one connection holds of the budget. Made by `RequestBudget.open`."""

    __slots__ = ("_budget", "expected_bytes", "partial_bytes", "receiver", "whole_bytes")

    def __init__(self, budget: RequestBudget, receiver: Receiver) -> None:
        self._budget = budget
        self.receiver: Receiver | None = receiver
        self.partial_bytes = 0
        """The buffer of a large request that is being received."""
        self.expected_bytes = 0
        """How long that request will be."""
        self.whole_bytes = 0
        """Requests that were received and are not answered."""

    def note(self, partial_bytes: int, expected_bytes: int, whole_bytes: int) -> None:
        """What the connection holds now."""
        if partial_bytes != self.partial_bytes or whole_bytes != self.whole_bytes:
            self.expected_bytes = expected_bytes
            self._budget.note(self, partial_bytes, whole_bytes)

    def close(self) -> None:
        """The connection is gone, and is not called any more; its whole requests count until they end.

        Without the cycle of references its memory is free at once, and does not wait for a collection.
        """
        self.note(0, 0, self.whole_bytes)
        self._budget.forget(self)
        self.receiver = None

    def may_read(self) -> bool:
        """Whether more may be read. If not, `Receiver.room_changed` is called later."""
        return self._budget.may_read(self)

    @property
    def waits(self) -> bool:
        """Whether reading is paused until there is room."""
        return self._budget.is_waiting(self)


class RequestBudget:
    """One for all connections of a server."""

    def __init__(self, bytes_max: int | None, call_later: CallLater | None = None) -> None:
        """`bytes_max` is None for no limit.

        `call_later` is the running loop's unless a test brings its own.
        """
        self._bytes_max = bytes_max
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self.partial_bytes = 0
        self.whole_bytes = 0
        self._receiving: dict[RequestShare, None] = {}
        """Those with a half-received request."""
        self._waiting: dict[RequestShare, None] = {}
        """Those that are not read from, in the order in which they were stopped."""
        self._admitted: RequestShare | None = None
        """The one that may go on beyond the limit."""
        self._admitted_bytes = 0
        """What had arrived of its request when that was looked at last."""
        self._timer: Timer | None = None

    def open(self, receiver: Receiver) -> RequestShare:
        """The share of a new connection."""
        return RequestShare(self, receiver)

    def is_waiting(self, share: RequestShare) -> bool:
        return share in self._waiting

    def note(self, share: RequestShare, partial_bytes: int, whole_bytes: int) -> None:
        """What a connection holds now."""
        before = self.partial_bytes + self.whole_bytes
        self.partial_bytes += partial_bytes - share.partial_bytes
        self.whole_bytes += whole_bytes - share.whole_bytes
        share.partial_bytes, share.whole_bytes = partial_bytes, whole_bytes
        if partial_bytes:
            self._receiving[share] = None
        else:
            self._end_receiving(share)
        held_bytes = self.partial_bytes + self.whole_bytes
        if self._bytes_max is not None and before < self._bytes_max <= held_bytes:
            self._stop_receiving()
        if self._waiting and (self._admitted is None or held_bytes < before):
            self._let_on()

    def forget(self, share: RequestShare) -> None:
        """The share neither waits nor receives any more."""
        self._end_receiving(share)

    def may_read(self, share: RequestShare) -> bool:
        """Whether the connection may be read from; if not, it waits from now on."""
        if self._bytes_max is None or self._has_room(share):
            self._waiting.pop(share, None)
            return True
        if share is self._admitted:
            return True
        if share not in self._waiting:
            self._waiting[share] = None
            if self._admitted is None:
                self._admit()
        return share is self._admitted

    def _has_room(self, share: RequestShare) -> bool:
        assert self._bytes_max is not None
        if share.partial_bytes:
            return self.partial_bytes + self.whole_bytes < self._bytes_max
        return self.whole_bytes < self._bytes_max

    def _stop_receiving(self) -> None:
        """The limit is reached: nobody reads a last piece beyond it."""
        for share in list(self._receiving):
            _receiver(share).room_changed()

    def _end_receiving(self, share: RequestShare) -> None:
        self._receiving.pop(share, None)
        self._waiting.pop(share, None)
        if share is self._admitted:
            self._end_admission()

    def _let_on(self) -> None:
        """There is room again: as many go on as may fill it with their next reads."""
        assert self._bytes_max is not None
        free_bytes = self._bytes_max - self.partial_bytes - self.whole_bytes
        for share in list(self._waiting):
            if not self._has_room(share) or (share.partial_bytes and free_bytes <= 0):
                continue
            if share.partial_bytes:
                free_bytes -= GROWTH_BYTES_MAX
            self._waiting.pop(share, None)
            _receiver(share).room_changed()
        if self._waiting and self._admitted is None:
            self._admit()

    def _admit(self) -> None:
        """Let the half-received request that has waited longest go on beyond the limit, if it fits."""
        assert self._bytes_max is not None
        for share in self._waiting:
            if share.partial_bytes and self.whole_bytes + share.expected_bytes <= self._bytes_max:
                del self._waiting[share]
                self._admitted, self._admitted_bytes = share, share.partial_bytes
                self._timer = self._call_later(PROGRESS_SECONDS, self._check_progress)
                _receiver(share).room_changed()
                return

    def _check_progress(self) -> None:
        share = self._admitted
        assert share is not None
        if share.partial_bytes - self._admitted_bytes < PROGRESS_BYTES_MIN:
            _receiver(share).cut_off(
                f"less than {PROGRESS_BYTES_MIN} bytes of a request of {share.expected_bytes} came in "
                f"{PROGRESS_SECONDS:g} s, while requests hold queued.max.request.bytes ({self._bytes_max})"
            )
            return
        self._admitted_bytes = share.partial_bytes
        self._timer = self._call_later(PROGRESS_SECONDS, self._check_progress)

    def _end_admission(self) -> None:
        self._admitted = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _receiver(share: RequestShare) -> Receiver:
    assert share.receiver is not None, "a closed share neither waits nor receives"
    return share.receiver
