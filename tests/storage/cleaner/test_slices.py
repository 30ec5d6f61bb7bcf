"""Slices and rests."""

from __future__ import annotations

import asyncio
import math

from barnabas.storage.cleaner.slices import SLICE_ITEMS_MAX, SliceMeter, Work, run_in_slices
from tests.simulation.virtual_loop import in_virtual_time
from tests.storage.memory_filesystem import MemoryFileSystem


def test_a_slice_ends_at_its_bytes_or_its_items() -> None:
    meter = SliceMeter(100)
    assert not meter.add(99)
    assert meter.add(1)
    assert meter.take() == 100
    assert not meter.add(0, SLICE_ITEMS_MAX - 1)
    assert meter.add(0)
    assert meter.take() == 0


def slices(count: int, into: list[str], second: asyncio.Event | None = None) -> Work:
    """Sets `second` with the second slice."""
    try:
        for number in range(count):
            into.append(str(number))
            if number and second is not None:
                second.set()
            yield 1_000
    finally:
        into.append("closed")


async def test_the_loop_gets_its_turn_between_slices() -> None:
    seen: list[str] = []

    async def serve() -> None:
        while "closed" not in seen:
            seen.append("served")
            await asyncio.sleep(0)

    serving = asyncio.create_task(serve())
    assert await run_in_slices(
        MemoryFileSystem(), slices(3, seen), asyncio.Event(), bytes_per_second=math.inf
    )
    await serving
    for first, second in (("0", "1"), ("1", "2")):
        assert "served" in seen[seen.index(first) : seen.index(second)]


async def test_work_that_is_stopped_is_closed() -> None:
    stop, second, seen = asyncio.Event(), asyncio.Event(), list[str]()
    work = slices(100, seen, second)
    running = asyncio.create_task(run_in_slices(MemoryFileSystem(), work, stop, bytes_per_second=math.inf))
    await second.wait()
    stop.set()
    assert not await running
    assert seen[-1] == "closed"
    assert "99" not in seen


@in_virtual_time
async def test_a_limit_on_bytes_makes_for_rests() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    seen: list[str] = []
    assert await run_in_slices(MemoryFileSystem(), slices(3, seen), asyncio.Event(), bytes_per_second=100)
    assert loop.time() - started == 3 * 1_000 / 100


@in_virtual_time
async def test_a_rest_is_twice_as_long_as_the_slice_and_ends_with_a_stop() -> None:
    filesystem, stop = MemoryFileSystem(), asyncio.Event()
    began: list[float] = []

    def slow() -> Work:
        while True:
            began.append(asyncio.get_running_loop().time())
            filesystem.now_ns += 3_600 * 10**9
            yield 1

    running = asyncio.create_task(run_in_slices(filesystem, slow(), stop, bytes_per_second=math.inf))
    await asyncio.sleep(2 * 3_600 + 1)
    assert began[1] - began[0] == 2 * 3_600
    stop.set()
    assert not await running
    assert len(began) == 2
