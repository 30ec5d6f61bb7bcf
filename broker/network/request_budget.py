"""Bounds the bytes of requests that all connections together hold (`queued.max.request.bytes`).

Bytes count when they have arrived, not when a client announces them: first in the buffer of a large request
that is being received, then as a whole request until it is answered. Small requests count from the moment
that their handler begins to wait.

At the limit, reading pauses:

- A connection with a half-received large request continues as soon as there is room.
- Other connections continue until whole requests alone reach the limit. Whole requests end by themselves.
- One half-received request at a time is admitted: it continues beyond the limit if it fits beside the whole
  requests, so that half-received requests cannot block each other for ever. It is the one with the most
  unread bytes.
- While a connection waits, the budget checks all connections every `LOOK_SECONDS`. An admitted request that
  has received nothing since its admission gives its place to one with unread bytes.
- A half-received request that receives nothing for `PROGRESS_SECONDS` of checks blocks others: its connection
  is closed. The time in which the broker itself does not read from it does not count.

So all requests together hold less than twice the limit, because the limit is at least one request, as in
Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from barnabas.protocol.frame import GROWTH_BYTES_MAX

LOOK_SECONDS: Final = 0.1
PROGRESS_SECONDS: Final = 5.0
"""The time after which a half-received request without progress is closed while connections wait. Its buffer
grows by `GROWTH_BYTES_MAX` at a time, so progress means that many bytes, or the whole rest.
"""
_SILENT_LOOKS_MAX: Final = round(PROGRESS_SECONDS / LOOK_SECONDS)

CallLater = Callable[[float, Callable[[], None]], "Timer"]


class Timer(Protocol):
    """The handle that `loop.call_later` returns."""

    def cancel(self) -> None: ...


class Receiver(Protocol):
    """A connection, as the budget uses it."""

    @property
    def is_held_up(self) -> bool:
        """Whether reading is paused for another reason than the budget."""
        ...

    def unread_bytes(self) -> int:
        """The bytes that have arrived and are not read yet."""
        ...

    def room_changed(self) -> None:
        """The result of `RequestShare.may_read` may have changed."""
        ...

    def cut_off(self, reason: str) -> None:
        """Close the connection, because its half-received request blocks others."""
        ...


class RequestShare:
    """The part of the budget that one connection uses; returned by `RequestBudget.open`."""

    __slots__ = (
        "budget",
        "expected_bytes",
        "partial_bytes",
        "receiver",
        "seen_bytes",
        "silent_looks",
        "whole_bytes",
    )

    def __init__(self, budget: RequestBudget, receiver: Receiver) -> None:
        self.budget = budget
        self.receiver: Receiver | None = receiver
        self.partial_bytes = 0
        """The size of the buffer of a large request that is being received."""
        self.expected_bytes = 0
        """The size that this request will have."""
        self.whole_bytes = 0
        """The size of the requests that were received and are not answered."""
        self.seen_bytes = 0
        """`partial_bytes` at the last check."""
        self.silent_looks = 0
        """The number of consecutive checks without new bytes."""

    def note(self, partial_bytes: int, expected_bytes: int, whole_bytes: int) -> None:
        """Set the bytes that the connection holds now."""
        if partial_bytes != self.partial_bytes or whole_bytes != self.whole_bytes:
            self.expected_bytes = expected_bytes
            self.budget.note(self, partial_bytes, whole_bytes)

    def close(self) -> None:
        """The connection is gone, and is not called again; its whole requests count until they end.

        The reference to the receiver is dropped, so that its memory is free without a garbage collection.
        """
        self.note(0, 0, self.whole_bytes)
        self.budget.forget(self)
        self.receiver = None

    def may_read(self) -> bool:
        """Whether the connection may read. If not, `Receiver.room_changed` is called later."""
        return self.budget.may_read(self)

    @property
    def waits(self) -> bool:
        """Whether reading is paused until there is room."""
        return self.budget.is_waiting(self)


class RequestBudget:
    """The budget of all connections of one server."""

    def __init__(self, bytes_max: int | None, call_later: CallLater | None = None) -> None:
        """`bytes_max` is None for no limit. Without `call_later` the running loop's is used."""
        self._bytes_max = bytes_max
        self.is_full = False
        """Whether the whole requests alone reach the limit: no connection may begin another one."""
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self.partial_bytes = 0
        self.whole_bytes = 0
        self._receiving: dict[RequestShare, None] = {}
        """The shares with a half-received request."""
        self._waiting: dict[RequestShare, None] = {}
        """The shares whose reading is paused, in the order of the pauses."""
        self._admitted: RequestShare | None = None
        """The share that may continue beyond the limit."""
        self._admitted_bytes = 0
        """The bytes of its request that had arrived at its admission."""
        self._timer: Timer | None = None
        """The next check; None while no connection waits."""

    def open(self, receiver: Receiver) -> RequestShare:
        """The share of a new connection."""
        return RequestShare(self, receiver)

    def is_waiting(self, share: RequestShare) -> bool:
        return share in self._waiting

    def note(self, share: RequestShare, partial_bytes: int, whole_bytes: int) -> None:
        """Set the bytes that a connection holds now."""
        before = self.partial_bytes + self.whole_bytes
        self.partial_bytes += partial_bytes - share.partial_bytes
        self.whole_bytes += whole_bytes - share.whole_bytes
        share.partial_bytes, share.whole_bytes = partial_bytes, whole_bytes
        self.is_full = self._bytes_max is not None and self.whole_bytes >= self._bytes_max
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
        """End the wait and the half-received request of a share."""
        self._end_receiving(share)

    def may_read(self, share: RequestShare) -> bool:
        """Whether the connection may read; if not, it waits from now on."""
        if self._bytes_max is None or self._has_room(share):
            self._waiting.pop(share, None)
            return True
        if share is self._admitted:
            return True
        if share not in self._waiting:
            self._waiting[share] = None
            if self._admitted is None:
                self._admit()
            self._look_later()
        return share is self._admitted

    def _has_room(self, share: RequestShare) -> bool:
        assert self._bytes_max is not None
        if share.partial_bytes:
            return self.partial_bytes + self.whole_bytes < self._bytes_max
        return not self.is_full

    def _stop_receiving(self) -> None:
        """The limit is reached: pause every connection with a half-received request."""
        for share in list(self._receiving):
            _receiver(share).room_changed()

    def _end_receiving(self, share: RequestShare) -> None:
        self._receiving.pop(share, None)
        self._waiting.pop(share, None)
        share.silent_looks = 0
        if share is self._admitted:
            self._admitted = None

    def _let_on(self) -> None:
        """There is room again: resume the connections whose next reads fit."""
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
        """Admit the half-received request with the most unread bytes of those that fit."""
        fitting = [share for share in self._waiting if self._fits(share)]
        if not fitting:
            return
        share = max(fitting, key=_unread_bytes)  # of equal ones the first, which has waited longest
        del self._waiting[share]
        self._admitted, self._admitted_bytes = share, share.partial_bytes
        _receiver(share).room_changed()

    def _fits(self, share: RequestShare) -> bool:
        assert self._bytes_max is not None
        return (
            share.partial_bytes > 0
            and not _receiver(share).is_held_up
            and self.whole_bytes + share.expected_bytes <= self._bytes_max
        )

    # The check every `LOOK_SECONDS`.

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        silent = [share for share in self._receiving if _is_silent(share)]
        self._replace_admitted(silent)
        for share in silent:
            if share.silent_looks >= _SILENT_LOOKS_MAX:
                _receiver(share).cut_off(self._reason(share))
        self._let_on()
        if self._waiting:
            self._look_later()

    def _reason(self, share: RequestShare) -> str:
        return (
            f"less than {GROWTH_BYTES_MAX} bytes of a request of {share.expected_bytes} arrived in "
            f"{PROGRESS_SECONDS:g} s, while requests hold queued.max.request.bytes ({self._bytes_max})"
        )

    def _replace_admitted(self, silent: Sequence[RequestShare]) -> None:
        """If the admitted request makes no progress, admit another one that can."""
        admitted = self._admitted
        if admitted is None or admitted.partial_bytes > self._admitted_bytes:
            return  # together with another admitted request it could exceed twice the limit
        if not (admitted in silent or _receiver(admitted).is_held_up):
            return
        if any(_unread_bytes(share) and self._fits(share) for share in self._waiting):
            self._admit()
            _receiver(admitted).room_changed()


def _is_silent(share: RequestShare) -> bool:
    """Whether no byte of its request has arrived since the last check."""
    receiver = _receiver(share)
    is_silent = share.partial_bytes == share.seen_bytes and not receiver.unread_bytes()
    share.seen_bytes = share.partial_bytes
    if not is_silent:
        share.silent_looks = 0
    elif not receiver.is_held_up:
        share.silent_looks += 1
    return is_silent


def _unread_bytes(share: RequestShare) -> int:
    return _receiver(share).unread_bytes()


def _receiver(share: RequestShare) -> Receiver:
    assert share.receiver is not None, "a closed share neither waits nor receives"
    return share.receiver
