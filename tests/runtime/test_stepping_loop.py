"""The loop whose time can be advanced: each timer sees its own time, and an advance ends after its work."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Coroutine
from typing import cast

import pytest

from barnabas.runtime.stepping_loop import JUMPS_MAX, AlreadyAdvancing, SteppingClock, SteppingLoop

NS_PER_SECOND = 1_000_000_000
MS_PER_SECOND = 1_000


def on_stepping_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Runs a test on a loop of its own."""

    @functools.wraps(test)
    def run() -> None:
        with asyncio.Runner(loop_factory=SteppingLoop) as runner:
            runner.run(test())

    return run


def stepping_loop() -> SteppingLoop:
    return cast("SteppingLoop", asyncio.get_running_loop())


async def advance(seconds: float) -> None:
    await stepping_loop().advance(round(seconds * NS_PER_SECOND), lambda _: None)


@on_stepping_loop
async def test_each_timer_sees_the_time_for_which_it_was_set() -> None:
    loop = stepping_loop()
    start = loop.time()
    seen: list[float] = []
    for delay in (5, 30, 600):
        loop.call_later(delay, lambda: seen.append(loop.time() - start))
    await advance(31)
    assert seen == [pytest.approx(5, abs=0.5), pytest.approx(30, abs=0.5)]
    assert loop.time() - start == pytest.approx(31, abs=0.5)


@on_stepping_loop
async def test_timers_that_timers_set_are_also_due() -> None:
    loop = stepping_loop()
    calls: list[int] = []

    def again() -> None:
        calls.append(1)
        loop.call_later(1000, again)

    again()
    await advance(6500)
    assert len(calls) == 7


@on_stepping_loop
async def test_an_advance_ends_after_the_work_of_its_timers() -> None:
    written: list[str] = []

    async def write() -> None:
        await asyncio.sleep(20)
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.05)
        written.append("in a thread")

    task = asyncio.create_task(write())
    await advance(20.1)
    assert written == ["in a thread"]
    await task


@on_stepping_loop
async def test_no_jump_happens_while_a_thread_is_busy() -> None:
    loop = stepping_loop()
    may_end = threading.Event()
    busy = loop.run_in_executor(None, may_end.wait)
    start = loop.time()
    advancing = loop.advance(100 * NS_PER_SECOND, lambda _: None)
    await asyncio.sleep(0.01)
    assert loop.time() - start < 50
    may_end.set()
    await advancing
    assert busy.done()
    assert loop.time() - start >= 100


@on_stepping_loop
async def test_both_clocks_move_with_the_loop_and_their_jumps_are_reported() -> None:
    clock = SteppingClock(stepping_loop())
    wall_ms, monotonic_ms = clock.wall_ms(), clock.monotonic_ms()
    jumps: list[int] = []
    await stepping_loop().advance(3600 * NS_PER_SECOND, jumps.append)
    assert sum(jumps) == 3600 * NS_PER_SECOND
    assert clock.wall_ms() - wall_ms >= 3600 * MS_PER_SECOND
    assert clock.monotonic_ms() - monotonic_ms >= 3600 * MS_PER_SECOND


@on_stepping_loop
async def test_a_long_advance_has_a_bounded_number_of_jumps() -> None:
    loop = stepping_loop()
    jumps: list[int] = []

    def tick() -> None:
        loop.call_later(0.001, tick)

    tick()
    await loop.advance(1000 * NS_PER_SECOND, jumps.append)
    assert len(jumps) <= JUMPS_MAX + 1


@on_stepping_loop
async def test_a_second_advance_is_refused_until_the_first_has_ended() -> None:
    loop = stepping_loop()
    first = loop.advance(NS_PER_SECOND, lambda _: None)
    with pytest.raises(AlreadyAdvancing):
        loop.advance(NS_PER_SECOND, lambda _: None)
    await first
    await advance(1)


@on_stepping_loop
async def test_an_advance_goes_on_if_its_caller_gives_up() -> None:
    jumps: list[int] = []
    stepping_loop().advance(NS_PER_SECOND, jumps.append).cancel()
    while not await _can_advance():  # noqa: ASYNC110  the first advance tells its end to its caller alone
        await asyncio.sleep(0.001)
    assert sum(jumps) == NS_PER_SECOND


async def _can_advance() -> bool:
    """Whether no advance is under way; if so, advances by a second."""
    try:
        await advance(1)
    except AlreadyAdvancing:
        return False
    return True


def test_a_loop_begins_with_the_shift_of_an_earlier_one() -> None:
    loop = SteppingLoop(60 * NS_PER_SECOND)
    try:
        before, shifted, after = time.monotonic(), loop.time(), time.monotonic()
        assert before + 60 <= shifted <= after + 60
    finally:
        loop.close()
