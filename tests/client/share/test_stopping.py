"""A consumer that stops: its handlers finish in a limited time, and the records not begun are released."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client import ConsumerClosedError, MisuseError
from tests.client.virtual_world import LOCK_MS, TOPIC, Consumer, World, eventually, take, values, virtually

MS_PER_SECOND = 1000


def seconds() -> float:
    return asyncio.get_running_loop().time()


class Work:
    """A handler that lasts for `duration_seconds`."""

    def __init__(self, duration_seconds: float) -> None:
        self.begun: list[str] = []
        """The values of the records."""
        self._duration_seconds = duration_seconds

    async def __call__(self, record: Any) -> None:
        self.begun += values([record])
        await asyncio.sleep(self._duration_seconds)

    async def has_begun(self, count: int = 1) -> bool:
        return len(self.begun) == count


@virtually
async def test_a_stop_lets_handlers_finish_and_releases_the_records_that_wait(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c", "d")
    await world.group()
    work = Work(5)
    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(work, concurrency=2))
        await eventually(lambda: work.has_begun(2))
        stopped_at = seconds()
        consumer.stop()
        async with world.consumer() as other:
            assert values(await take(other, 2, within_seconds=2)) == ["c", "d"]
            await running
        assert 4 < seconds() - stopped_at < 6
        assert list((await consumer.commit()).values()) == [None]
    assert work.begun == ["a", "b"]
    assert await world.lag() == 2


@virtually
async def test_a_handler_that_outlasts_the_lock_keeps_its_record_after_a_stop(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    work = Work(5 * LOCK_MS / MS_PER_SECOND)
    async with world.consumer(stop_timeout_ms=10 * LOCK_MS) as consumer, world.consumer() as other:
        running = asyncio.create_task(consumer.run(work))
        await eventually(work.has_begun)
        consumer.stop()
        await running
        assert list((await consumer.commit()).values()) == [None]
        assert await other.poll(timeout=1) == []
    assert await world.lag() == 0


@virtually
async def test_handlers_that_do_not_finish_within_the_stop_timeout_are_cancelled(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    work = Work(3600)
    async with world.consumer(stop_timeout_ms=3_000) as consumer:
        running = asyncio.create_task(consumer.run(work, concurrency=2))
        await eventually(lambda: work.has_begun(2))
        stopped_at = seconds()
        consumer.stop()
        await running
        assert seconds() - stopped_at == pytest.approx(3, abs=0.1)
        async with world.consumer() as other:
            assert {record.delivery_count for record in await take(other, 2)} == {2}
    assert [line for line in caplog.messages if line.startswith("2 handlers did not finish in time")]


@virtually
async def test_a_second_stop_cancels_the_handlers_at_once_and_a_third_does_nothing(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    work = Work(3600)

    async def handle(record: Any) -> None:
        try:
            await work(record)
        finally:
            await asyncio.sleep(1)  # cleans up

    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(handle))
        await eventually(work.has_begun)
        stopped_at = seconds()
        consumer.stop()
        consumer.stop()
        await asyncio.sleep(0.5)
        consumer.stop()
        await running
        assert seconds() - stopped_at == pytest.approx(1, abs=0.1)
    assert await world.lag() == 1


@virtually
async def test_cancelling_run_ends_its_handlers_at_once_after_a_stop_too(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    work = Work(3600)
    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(work))
        await eventually(work.has_begun)
        consumer.stop()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(1):
                await running


@virtually
async def test_a_handler_that_fails_with_a_timeout_of_its_own_does_not_end_run(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    work = Work(2)

    async def handle(record: Any) -> None:
        if record.value == b"a" and record.delivery_count == 1:
            raise TimeoutError
        await work(record)

    async with world.consumer() as consumer:
        running = asyncio.create_task(consumer.run(handle, concurrency=2))
        await eventually(lambda: work.has_begun(2))
        consumer.stop()
        await running
    assert await world.lag() == 0


@virtually
async def test_loops_end_after_a_stop_and_polls_are_refused(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    seen: list[str] = []
    async with world.consumer() as consumer:
        waiting = asyncio.create_task(_count_batches(consumer))
        await eventually(lambda: _has_members(world, 1))
        async for record in consumer:
            async with record:
                seen += values([record])
                consumer.stop()
        with pytest.raises(ConsumerClosedError, match="stopping"):
            await consumer.poll()
        with pytest.raises(ConsumerClosedError):
            consumer.subscribe([TOPIC])
        await waiting
        await eventually(lambda: _has_members(world, 0))
    assert len(seen) == 1


@virtually
async def test_a_stop_in_implicit_mode_accepts_the_records_of_the_last_poll(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(acknowledgement_mode="implicit") as consumer:
        async for batch in consumer.batches(max_records=2):
            assert values(batch) == ["a", "b"]
            consumer.stop()
        await consumer.commit()
    assert await world.lag() == 1


@virtually
async def test_records_that_arrive_after_a_stop_go_to_another_consumer(world: World) -> None:
    await world.topic()
    await world.group()
    work = Work(6)
    async with world.consumer(max_wait_ms=5_000) as consumer:
        running = asyncio.create_task(consumer.run(work))
        await world.write(TOPIC, "first")
        await eventually(work.has_begun)
        await asyncio.sleep(1)  # the next fetch waits at the broker
        consumer.stop()
        await world.write(TOPIC, "late")
        async with world.consumer() as other:
            assert values(await take(other, 1, within_seconds=2)) == ["late"]
            await running
    assert work.begun == ["first"]


@virtually
async def test_run_after_a_stop_returns_at_once(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    work = Work(1)
    async with world.consumer() as consumer:
        consumer.stop()
        async with asyncio.timeout(1):
            await consumer.run(work)
    assert work.begun == []


@virtually
async def test_a_stop_before_the_start_and_after_the_close_does_nothing(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    consumer = world.consumer()
    consumer.stop()
    async with consumer:
        assert values(await take(consumer, 1)) == ["a"]
    consumer.stop()
    with pytest.raises(ConsumerClosedError, match="closed"):
        await consumer.poll()


@virtually
async def test_a_callback_for_outcomes_may_not_stop_the_consumer(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    errors: list[MisuseError] = []

    def stop(_outcome: Any) -> None:
        try:
            consumer.stop()
        except MisuseError as error:
            errors.append(error)

    consumer = world.consumer(on_outcome=stop)
    async with consumer:
        (record,) = await take(consumer, 1)
        record.accept()
        await consumer.commit()
    assert len(errors) == 1


async def _count_batches(consumer: Consumer) -> int:
    return len([batch async for batch in consumer.batches()])


async def _has_members(world: World, count: int) -> bool:
    return len(await world.members()) == count
