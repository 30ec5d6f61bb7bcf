"""The two times of a broker: wall time for stored timestamps, monotonic time for deadlines.

They are different types, so that a deadline is never compared with a record's timestamp. A broker owns one
`Clock` and passes the numbers as arguments; the pure code never reads a clock.
"""

import time
from typing import Final, NewType, Protocol

from barnabas.protocol.tuples import maker
from barnabas.runtime.moment import Moment

WallMs = NewType("WallMs", int)
"""Milliseconds since 1970-01-01 UTC."""

MonotonicMs = NewType("MonotonicMs", int)
"""Milliseconds since an arbitrary moment; never goes back."""

_NANOSECONDS_PER_MS: Final = 1_000_000


class Clock(Protocol):
    """The source of a broker's times; a simulation has its own."""

    def wall_ms(self) -> WallMs: ...

    def monotonic_ms(self) -> MonotonicMs: ...


_new_moment = maker(Moment)


def moment(clock: Clock) -> Moment:
    """The present moment by both clocks."""
    return _new_moment((clock.monotonic_ms(), clock.wall_ms()))


def ahead_ms(clock: Clock) -> int:
    """The wall-clock time minus the monotonic time: it converts one into the other until a clock is set."""
    return clock.wall_ms() - clock.monotonic_ms()


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // _NANOSECONDS_PER_MS)

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(time.monotonic_ns() // _NANOSECONDS_PER_MS)
