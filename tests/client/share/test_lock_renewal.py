"""Renewal of locks against the real broker: the effects of a refusal."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import AcknowledgeError
from barnabas.client.share.renewals import RENEWALS_REFUSED_MAX
from barnabas.protocol.errors import ErrorCode
from tests.client.virtual_world import (
    LOCK_MS,
    TOPIC,
    Consumer,
    Records,
    World,
    take,
    virtually,
    with_settings,
)

LOCK_SECONDS = LOCK_MS / 1000
OTHER_TOPIC = "returns"


async def hold(consumer: Consumer, count: int) -> Records:
    """Take `count` records and hold them for longer than a lock lasts."""
    records = await take(consumer, count)
    await asyncio.sleep(2.5 * LOCK_SECONDS)
    return records


@virtually
async def test_a_lock_can_be_renewed_immediately(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        for _ in range(3):
            await record.renew()
        assert record.is_held


@virtually
async def test_several_tasks_renew_one_lock(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        await asyncio.gather(record.renew(), record.renew())
        assert record.is_held


@virtually
async def test_a_refused_renewal_raises_the_brokers_message(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(renew_acknowledge_enable=False)
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        with pytest.raises(AcknowledgeError, match="doesn't allow to renew") as refused:
            await record.renew()
        assert refused.value.code is ErrorCode.invalid_record_state
        assert record.is_held


@virtually
async def test_an_outstanding_renewal_fails_when_the_connection_is_lost(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        renewing = asyncio.create_task(record.renew())
        await asyncio.sleep(0)
        world.cut_connections()
        with pytest.raises(AcknowledgeError) as lost:
            await renewing
        assert lost.value.code is ErrorCode.network_exception


@virtually
async def test_locks_are_renewed_again_once_the_group_allows_it_again(world: World) -> None:
    await world.topic(TOPIC)
    await world.group(record_lock_duration_ms=LOCK_MS, delivery_count_limit=10)
    async with world.consumer() as consumer:
        for is_enabled in (True, False, True, True):
            await world.group(renew_acknowledge_enable=is_enabled)
            await world.write(TOPIC, *map(str, range(2 * RENEWALS_REFUSED_MAX)))
            records = await hold(consumer, 2 * RENEWALS_REFUSED_MAX)
            assert [record.is_held for record in records] == [is_enabled] * len(records)
            if not is_enabled:
                records = await take(consumer, len(records))
            for record in records:
                record.accept()
            await consumer.commit()
    assert await world.lag() == 0


@virtually
async def test_deleting_a_topic_keeps_the_locks_of_other_topics(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.topic(OTHER_TOPIC, partition_count=2 * RENEWALS_REFUSED_MAX)
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(TOPIC, OTHER_TOPIC) as consumer:
        for partition in range(2 * RENEWALS_REFUSED_MAX):
            await world.write(OTHER_TOPIC, "x", partition=partition)
        records = await take(consumer, 2 + 2 * RENEWALS_REFUSED_MAX)
        await world.delete_topic(OTHER_TOPIC)
        await asyncio.sleep(2.5 * LOCK_SECONDS)
        assert [record.is_held for record in records] == [record.topic == TOPIC for record in records]
        await world.write(TOPIC, "c")
        (later,) = await hold(consumer, 1)
        assert later.is_held


@virtually
@with_settings(group__share__min__record__lock__duration__ms="1000")
async def test_shorter_locks_are_checked_sooner(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(record_lock_duration_ms=60_000)
    async with world.consumer() as consumer:
        (long_locked,) = await take(consumer, 1)
        await world.group(record_lock_duration_ms=1_000)
        await world.write(TOPIC, "b")
        (record,) = await take(consumer, 1)
        await asyncio.sleep(5)
        assert (long_locked.is_held, record.is_held) == (True, True)
