"""How many bytes of requests all connections together may hold (`queued.max.request.bytes`).

Bytes count when they have arrived, not when a client announces them: in the buffer of a large request that is
still being received, then as a whole request until it is answered. Small requests count from the moment that
their handler waits for something.

At the limit, reading pauses:

- A connection with a half-received large request is read from again as soon as there is room.
- Other connections go on until whole requests alone reach the limit. Whole requests end by themselves.
- One half-received request at a time is admitted: it goes on beyond the limit, if it fits beside the whole
  ones. So half-received requests cannot block each other for ever. It is the one of which most bytes have
  come that are not read.
- While any connection waits, the budget looks around every `LOOK_SECONDS`. An admitted request that has
  brought nothing since it was admitted gives its place to one that has bytes to read.
- A half-received request that has brought nothing for `PROGRESS_SECONDS` of looks is in the way of others:
  its connection is closed. The time in which the broker itself reads nothing from it does not count.

So all requests together hold less than twice the limit: it is no smaller than one request, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from barnabas.protocol.frame import GROWTH_BYTES_MAX

LOOK_SECONDS: Final = 0.1
PROGRESS_SECONDS: Final = 5.0
"""So long may a half-received request bring nothing while connections wait. The buffer that it is received
into grows by `GROWTH_BYTES_MAX` at a time: something is as much as that, or all of its rest."""
_SILENT_LOOKS_MAX: Final = round(PROGRESS_SECONDS / LOOK_SECONDS)

CallLater = Callable[[float, Callable[[], None]], "Timer"]


class Timer(Protocol):
    """What `loop.call_later` answers."""

    def cancel(self) -> None: ...


class Receiver(Protocol):
    """A connection, as the budget knows it."""

    @property
    def is_held_up(self) -> bool:
        """Whether it isn't read from for another reason than the budget."""
        ...

    def unread_bytes(self) -> int:
        """The bytes that have come and are not read yet."""
        ...

    def room_changed(self) -> None:
        """`RequestShare.may_read` may have another answer."""
        ...

    def cut_off(self, reason: str) -> None:
        """The connection is to be closed: its half-received request keeps others waiting."""
        ...


class RequestShare:
    """What one connection holds of the budget. Made by `RequestBudget.open`."""

    __slots__ = (
        "_budget",
        "expected_bytes",
        "partial_bytes",
        "receiver",
        "seen_bytes",
        "silent_looks",
        "whole_bytes",
    )

    def __init__(self, budget: RequestBudget, receiver: Receiver) -> None:
        self._budget = budget
        self.receiver: Receiver | None = receiver
        self.partial_bytes = 0
        """The buffer of a large request that is being received."""
        self.expected_bytes = 0
        """How long that request will be."""
        self.whole_bytes = 0
        """Requests that were received and are not answered."""
        self.seen_bytes = 0
        """`partial_bytes` at the last look."""
        self.silent_looks = 0
        """How many looks in a row have found nothing new."""

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
        """What had arrived of its request then."""
        self._timer: Timer | None = None
        """The next look; none while no connection waits."""

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
            self._look_later()
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
        share.silent_looks = 0
        if share is self._admitted:
            self._admitted = None

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
        """Let one half-received request go on beyond the limit, that with most unread of those that fit."""
        fitting = [share for share in self._waiting if self._fits(share)]
        if not fitting:
            return
        share = max(fitting, key=_unread_bytes)  # the first of several, which has waited longest
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

    # Looks.

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
            f"less than {GROWTH_BYTES_MAX} bytes of a request of {share.expected_bytes} came in "
            f"{PROGRESS_SECONDS:g} s, while requests hold queued.max.request.bytes ({self._bytes_max})"
        )

    def _replace_admitted(self, silent: Sequence[RequestShare]) -> None:
        """The admitted request, if it does not use its place, gives it to another one that can."""
        admitted = self._admitted
        if admitted is None or admitted.partial_bytes > self._admitted_bytes:
            return  # together with another one it could go too far beyond the limit
        if not (admitted in silent or _receiver(admitted).is_held_up):
            return
        if any(_unread_bytes(share) and self._fits(share) for share in self._waiting):
            self._admit()
            _receiver(admitted).room_changed()


def _is_silent(share: RequestShare) -> bool:
    """Whether nothing of its request has come since the last look."""
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
