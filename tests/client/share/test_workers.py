"""Several records handled at once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from barnabas.client import MisuseError
from barnabas.client.share import workers
from tests.client.virtual_world import TOPIC, World, eventually, virtually


class SpoiledError(Exception):
    """No consumer will ever be able to process the record. It says so in several lines."""

    def __repr__(self) -> str:
        return "SpoiledError: two faults:\n  no price\n  no address"


@virtually
async def test_a_handler_is_run_for_many_records_at_once(world: World) -> None:
    await world.topic(TOPIC, *map(str, range(40)))
    await world.group()
    at_work = most_at_work = 0
    failed: set[bytes | None] = set()

    async def handle(record: Any) -> None:
        nonlocal at_work, most_at_work
        at_work += 1
        most_at_work = max(most_at_work, at_work)
        await asyncio.sleep(1)
        at_work -= 1
        if record.value not in failed and record.value.endswith(b"3"):
            failed.add(record.value)
            raise ZeroDivisionError

    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(handle, concurrency=8))
        await eventually(lambda: _lag_is(world, 0))
    await running
    assert most_at_work == 8
    assert len(failed) == 4


@virtually
async def test_run_is_refused_in_implicit_mode(world: World) -> None:
    await world.topic()
    async with world.consumer(acknowledgement_mode="implicit") as consumer:
        with pytest.raises(MisuseError):
            await consumer.run(asyncio.sleep)  # type: ignore[arg-type]


@pytest.mark.parametrize("concurrency", [0, 10_001])
@virtually
async def test_the_number_of_workers_is_limited(world: World, concurrency: int) -> None:
    await world.topic()
    async with world.consumer() as consumer:
        with pytest.raises(MisuseError):
            await consumer.run(asyncio.sleep, concurrency=concurrency)  # type: ignore[arg-type]


@virtually
async def test_cancelling_run_releases_the_records_in_progress(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()

    async def hang(_record: Any) -> None:
        await asyncio.sleep(3600)

    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(hang, concurrency=2))
        await asyncio.sleep(5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        records = [await consumer.poll(max_records=1) for _ in range(2)]
        assert [record.delivery_count for (record,) in records] == [2, 2]


@virtually
async def test_a_handler_that_awaits_a_cancelled_future_has_failed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic(TOPIC, "bad", "bad", "bad", "good")
    await world.group()
    failed: set[int] = set()

    async def handle(record: Any) -> None:
        if record.value == b"bad" and record.offset not in failed:
            failed.add(record.offset)
            waited_for = asyncio.get_running_loop().create_future()
            waited_for.cancel()
            await waited_for

    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(handle, concurrency=2))
        await eventually(lambda: _lag_is(world, 0))
    await running
    assert failed == {0, 1, 2}
    assert len([line for line in caplog.messages if line.startswith("The handler failed on")]) == 3


@virtually
async def test_a_rejecting_exception_is_logged_in_one_line_and_others_with_a_traceback(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic(TOPIC, "spoiled", "unlucky")
    await world.group()

    async def handle(record: Any) -> None:
        if record.value == b"spoiled":
            raise SpoiledError
        if record.delivery_count == 1:
            raise ZeroDivisionError

    async with world.consumer(reject_on=(SpoiledError,)) as consumer:
        running = asyncio.create_task(consumer.run(handle, concurrency=1))
        await eventually(lambda: _lag_is(world, 0))
    await running
    rejection, failure = [one for one in caplog.records if one.name == workers.__name__]
    assert rejection.getMessage() == (
        "The handler raised an exception of reject_on at <ShareRecord orders-0@0 settled>: "
        "SpoiledError: two faults: no price no address"
    )
    assert (rejection.levelno, rejection.exc_info) == (logging.WARNING, None)
    assert failure.getMessage() == "The handler failed on <ShareRecord orders-0@1 settled>"
    assert failure.exc_info is not None
    assert failure.exc_info[0] is ZeroDivisionError


@virtually
async def test_a_cancelled_worker_ends_all_workers(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()

    async def handle(record: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        if record.value == b"a":
            task.cancel()
        await asyncio.sleep(3600)

    async with world.consumer() as consumer:
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(60):
                await consumer.run(handle, concurrency=2)


async def _lag_is(world: World, lag: int) -> bool:
    return await world.lag() == lag
