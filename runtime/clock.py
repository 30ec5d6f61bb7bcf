"""The two times of a broker: wall time for what is stored, monotonic time for what is waited for.

They are different types, so that a deadline is never compared with a record's timestamp. A broker owns one
`Clock` and hands the numbers down as arguments; nothing below the edge asks for the time.
"""

import time
from typing import NewType, Protocol

WallMs = NewType("WallMs", int)
"""Milliseconds since 1970-01-01 UTC."""

MonotonicMs = NewType("MonotonicMs", int)
"""Milliseconds since an arbitrary moment; never goes back."""

_NANOSECONDS_PER_MS = 1_000_000


class Clock(Protocol):
    """Where a broker's times come from; a simulation brings its own."""

    def wall_ms(self) -> WallMs: ...

    def monotonic_ms(self) -> MonotonicMs: ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // _NANOSECONDS_PER_MS)

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(time.monotonic_ns() // _NANOSECONDS_PER_MS)
