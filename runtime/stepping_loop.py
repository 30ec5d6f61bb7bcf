"""An event loop whose time can be advanced: it jumps from timer to timer, and each timer sees the time for
which it was set.

Only a broker for tests runs on it. All timers of a broker are timers of its loop, so one mechanism moves
locks, sessions, retention, the cleaner and pauses. While an advance is under way, the loop jumps whenever it
has nothing else to do: no callback is ready and no worker thread is busy. So all work that became due at one
time is finished before the next jump, and all of it is finished when the advance ends.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, TypeVar, TypeVarTuple

from barnabas.runtime.clock import MonotonicMs, WallMs

JUMPS_MAX: Final = 4_000
"""The most jumps of one advance: a longer one jumps over near timers, which are then late by at most one
part in this number of the whole advance.
"""

NANOSECONDS_PER_MS: Final = 1_000_000
_NANOSECONDS_PER_SECOND: Final = 1_000_000_000

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")


class AlreadyAdvancing(Exception):  # noqa: N818  a state, not a defect
    """An advance is under way; a second one must wait for its end."""


class Advance:
    """One advance of the time. `ended` is done when all work that became due has ended."""

    def __init__(self, duration_ns: int, on_jump: Callable[[int], None], ended: asyncio.Future[None]) -> None:
        """`on_jump` is called after each jump, before the timers, with its length in nanoseconds."""
        self.ended = ended
        self._left_ns = duration_ns
        self._jump_min_ns = duration_ns // JUMPS_MAX
        self._on_jump = on_jump

    def next_jump_ns(self, timer_ns: int | None) -> int:
        """The length of the next jump, if the next timer is due in `timer_ns`; 0 at the end."""
        wanted_ns = self._left_ns if timer_ns is None else max(timer_ns, self._jump_min_ns)
        return min(self._left_ns, wanted_ns)

    def jumped(self, jump_ns: int) -> None:
        self._left_ns -= jump_ns
        self._on_jump(jump_ns)


class _Selector(selectors.DefaultSelector):
    """Waits for files as usual. During an advance it jumps instead of waiting."""

    def __init__(self, idle: Callable[[float | None], bool]) -> None:
        """`idle` is called before a wait, with its limit in seconds; True if it must not wait."""
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        may_wait = timeout is None or timeout > 0
        if may_wait and self._idle(timeout):
            return super().select(0)
        return super().select(timeout)


class SteppingLoop(asyncio.SelectorEventLoop):
    """The loop of a broker for tests. Its time is the system's plus `shift_ns`, and never goes back."""

    def __init__(self, shift_ns: int = 0) -> None:
        """Begins with the shift that an earlier process had reached."""
        self.shift_ns = shift_ns
        self._advance: Advance | None = None
        self._busy_threads = 0
        super().__init__(_Selector(self._on_idle))

    def time(self) -> float:
        return (time.monotonic_ns() + self.shift_ns) / _NANOSECONDS_PER_SECOND

    def advance(self, duration_ns: int, on_jump: Callable[[int], None]) -> asyncio.Future[None]:
        """Advance the time; see `Advance`. Raises AlreadyAdvancing."""
        if self._advance is not None:
            raise AlreadyAdvancing
        self._advance = Advance(duration_ns, on_jump, self.create_future())
        return self._advance.ended

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Arguments], _T], *args: *_Arguments
    ) -> asyncio.Future[_T]:
        """As in asyncio. No jump happens until the call has ended."""
        running = super().run_in_executor(executor, func, *args)
        self._busy_threads += 1
        running.add_done_callback(self._thread_is_free)
        return running

    def _thread_is_free(self, _: object) -> None:
        self._busy_threads -= 1

    def _on_idle(self, timeout: float | None) -> bool:
        """Jump if an advance is under way; returns whether the loop must look at its timers."""
        advance = self._advance
        if advance is None or self._busy_threads:
            return False
        timer_ns = None if timeout is None else math.ceil(timeout * _NANOSECONDS_PER_SECOND)
        jump_ns = advance.next_jump_ns(timer_ns)
        if jump_ns == 0:
            self._advance = None
            if not advance.ended.done():
                advance.ended.set_result(None)
            return True
        self.shift_ns += jump_ns
        advance.jumped(jump_ns)
        return True


class SteppingClock:
    """The times of a broker on such a loop: both are ahead of the system's by the loop's shift."""

    def __init__(self, loop: SteppingLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> WallMs:
        return WallMs((time.time_ns() + self._loop.shift_ns) // NANOSECONDS_PER_MS)

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs((time.monotonic_ns() + self._loop.shift_ns) // NANOSECONDS_PER_MS)
