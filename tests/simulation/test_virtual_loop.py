"""Virtual time, and processes that end between two callbacks."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from tests.simulation.virtual_loop import (
    Deadlock,
    Killed,
    Livelock,
    Process,
    VirtualLoop,
    current_process,
    run_to_end,
)


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, None]]) -> None:
    loop = VirtualLoop()
    run_to_end(loop, main(loop))


def test_an_hour_passes_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        started_ms = loop.now_ms
        await asyncio.sleep(3600)
        assert loop.now_ms - started_ms == 3_600_000

    run(main)


def test_waiters_wake_in_the_order_of_their_times() -> None:
    async def main(_: VirtualLoop) -> None:
        woken: list[int] = []

        async def wait(seconds: int) -> None:
            await asyncio.sleep(seconds)
            woken.append(seconds)

        await asyncio.gather(wait(3), wait(1), wait(2))
        assert woken == [1, 2, 3]

    run(main)


def test_waiting_for_nothing_is_a_deadlock() -> None:
    async def main(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock):
        run(main)


def test_spinning_is_a_livelock() -> None:
    async def main(_: VirtualLoop) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(Livelock):
        run(main)


async def _in_process(steps: list[str], process: Process) -> None:
    async def part() -> None:
        assert current_process() is process
        try:
            await asyncio.sleep(1)
            steps.append("began")
            await asyncio.sleep(1)
            steps.append("ended")
        finally:
            steps.append("cleaned up")

    await asyncio.ensure_future(part())


def test_a_process_runs_to_its_end() -> None:
    async def main(_: VirtualLoop) -> None:
        steps: list[str] = []
        process = Process("p")
        await process.run(_in_process(steps, process))
        assert steps == ["began", "ended", "cleaned up"]
        assert current_process() is None

    run(main)


def test_a_killed_process_does_nothing_more() -> None:
    async def main(loop: VirtualLoop) -> None:
        steps: list[str] = []
        process = Process("p")
        loop.call_later(1.5, process.kill)
        with pytest.raises(Killed):
            await process.run(_in_process(steps, process))
        await asyncio.sleep(10)
        assert "ended" not in steps

    run(main)


def test_blocks_that_wait_at_the_end_of_a_killed_process_are_closed_one_after_another() -> None:
    async def main(loop: VirtualLoop) -> None:
        steps: list[str] = []

        async def close(name: str) -> None:
            try:
                await asyncio.sleep(1)
                steps.append(f"{name} closed")
            finally:
                steps.append(f"{name} left")

        async def part() -> None:
            try:
                try:
                    await asyncio.sleep(2)
                finally:
                    await close("inner")
            finally:
                await close("outer")

        process = Process("p")
        loop.call_later(1, process.kill)
        with pytest.raises(Killed):
            await process.run(part())
        assert steps == ["inner left", "outer left"]

    run(main)


def test_everything_that_a_process_started_ends_with_it() -> None:
    async def main(loop: VirtualLoop) -> None:
        called: list[str] = []

        async def start() -> None:
            loop.call_later(1, called.append, "timer")
            loop.call_soon(loop.call_later, 1, called.append, "timer of a callback")

        process = Process("p")
        await process.run(start())
        await asyncio.sleep(0)
        process.kill()
        await asyncio.sleep(2)
        assert called == []

    run(main)


def test_a_process_can_end_itself_in_the_middle() -> None:
    async def main(_: VirtualLoop) -> None:
        process = Process("p")

        async def end() -> None:
            process.kill()
            raise Killed

        with pytest.raises(Killed):
            await process.run(end())

    run(main)


def test_others_may_wait_for_a_process_that_is_killed() -> None:
    async def main(loop: VirtualLoop) -> None:
        process = Process("p")
        forever: Awaitable[None] = loop.create_future()

        async def wait() -> None:
            await forever

        loop.call_later(1, process.kill)
        with pytest.raises(Killed):
            await process.run(wait())

    run(main)
