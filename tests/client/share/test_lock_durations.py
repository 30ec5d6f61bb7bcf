"""Consumers that ask for the duration of their locks: `record_lock_duration_ms`."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import BrokerError, MisuseError, ShareConsumer
from barnabas.protocol.errors import ErrorCode
from tests.client.virtual_world import ADDRESS, GROUP, TOPIC, World, take, values, virtually


@virtually
async def test_a_consumer_gets_the_duration_that_it_asks_for(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with (
        world.consumer(record_lock_duration_ms=5_000, renew_locks=False, prefetch_records=0) as slow,
        world.consumer() as other,
    ):
        (record,) = await take(slow, 1)
        started = asyncio.get_running_loop().time()
        (again,) = await take(other, 1)
        assert 4.5 < asyncio.get_running_loop().time() - started < 12, "the group's locks last 30 s"
        assert again.delivery_count == 2
        again.accept()
        await asyncio.sleep(1)
        assert not record.is_held


@virtually
async def test_short_locks_are_renewed_in_time(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer(record_lock_duration_ms=1_000) as consumer, world.consumer() as other:
        (record,) = await take(consumer, 1)
        assert await other.poll(timeout=30) == []
        assert record.is_held
        record.accept()
        await consumer.commit()
    assert await world.lag() == 0


@virtually
async def test_records_that_wait_in_the_client_stay_locked(world: World) -> None:
    await world.topic(TOPIC, *"abcd")
    await world.group()
    async with world.consumer(record_lock_duration_ms=2_000) as consumer:
        (first,) = await consumer.poll(timeout=10, max_records=1)
        await asyncio.sleep(10)
        rest = await take(consumer, 3)
        assert values([first, *rest]) == ["a", "b", "c", "d"]
        assert {one.delivery_count for one in (first, *rest)} == {1}
        for record in (first, *rest):
            record.accept()
    assert await world.lag() == 0


@virtually
async def test_a_duration_beyond_the_brokers_maximum_ends_the_consumer_with_its_reason(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer(record_lock_duration_ms=60_001) as consumer:
        with pytest.raises(BrokerError, match="from 1000 ms to 60000 ms") as raised:
            await consumer.poll(timeout=10)
        assert raised.value.code is ErrorCode.invalid_request


@pytest.mark.parametrize("duration_ms", [999, 0, -1])
async def test_a_duration_below_a_second_is_refused_at_once(duration_ms: int) -> None:
    with pytest.raises(
        MisuseError, match=r"record_lock_duration_ms is .*; it must be at least 1000, or None"
    ):
        ShareConsumer(ADDRESS, group=GROUP, topics=[TOPIC], record_lock_duration_ms=duration_ms)
