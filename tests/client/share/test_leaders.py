"""The assignment: members that join and leave, topics that are created, deleted and created again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client import GroupFullError, MisuseError, ShareConsumer
from tests.client.virtual_world import TOPIC, World, eventually, take, values, virtually, with_settings


@virtually
async def test_several_consumers_share_one_partition(world: World) -> None:
    await world.topic()
    await world.group()
    taken: list[list[str]] = [[], []]

    async with world.consumer() as one, world.consumer() as other:

        async def read(consumer: ShareConsumer[Any, Any], into: list[str]) -> None:
            async for record in consumer:
                async with record:
                    into.append(record.value.decode())

        readers = [asyncio.create_task(read(*pair)) for pair in zip((one, other), taken, strict=True)]
        for number in range(100):
            await world.write(TOPIC, f"{number}-a", f"{number}-b")
            await asyncio.sleep(0.1)
        await eventually(lambda: _lag_is(world, 0))
    await asyncio.gather(*readers)
    assert all(taken)
    assert sorted(taken[0] + taken[1]) == sorted(f"{number}-{one}" for number in range(100) for one in "ab")


@virtually
async def test_partitions_move_when_a_member_joins_and_leaves(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    await world.group()
    async with world.consumer() as one:
        await world.write(TOPIC, "a", partition=0)
        await world.write(TOPIC, "b", partition=1)
        for record in await take(one, 2):
            record.accept()
        async with world.consumer() as other:
            await asyncio.sleep(15)
            await world.write(TOPIC, "c", partition=0)
            await world.write(TOPIC, "d", partition=1)
            (mine,), (theirs,) = await take(one, 1), await take(other, 1)
            assert sorted(values([mine, theirs])) == ["c", "d"]
            mine.accept()
            theirs.accept()
        await asyncio.sleep(15)
        await world.write(TOPIC, "e", partition=0)
        await world.write(TOPIC, "f", partition=1)
        assert sorted(values(await take(one, 2))) == ["e", "f"]


@virtually
async def test_a_topic_may_be_created_later(world: World) -> None:
    await world.group()
    async with world.consumer() as consumer:
        assert await consumer.poll(timeout=30) == []
        await world.topic(TOPIC, "a")
        assert values(await take(consumer, 1)) == ["a"]


@virtually
async def test_a_topic_created_again_is_read_from_its_start(world: World) -> None:
    await world.topic(TOPIC, "old")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        record.accept()
        await consumer.commit()
        await world.delete_topic(TOPIC)
        await world.topic(TOPIC, "new")
        assert values(await take(consumer, 1)) == ["new"]


@virtually
async def test_the_subscription_can_change(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.topic("returns", "b")
    await world.group()
    async with world.consumer() as consumer:
        for record in await take(consumer, 1):
            record.accept()
        consumer.subscribe(["returns"])
        assert values(await take(consumer, 1)) == ["b"]
        with pytest.raises(MisuseError):
            consumer.subscribe([])


@virtually
@with_settings(group__share__max__size="1")
async def test_a_full_group_is_raised_to_every_reader(world: World) -> None:
    await world.topic()
    async with world.consumer() as first:
        assert await first.poll(timeout=5) == []
        async with world.consumer() as second:
            for _ in range(2):
                with pytest.raises(GroupFullError):
                    await second.poll()
            with pytest.raises(GroupFullError):
                await anext(aiter(second))


@virtually
async def test_a_commit_does_not_wait_for_records(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer(max_wait_ms=60_000) as consumer:
        for record in await take(consumer, 2):
            record.accept()
            await asyncio.sleep(0.05)
            started = asyncio.get_running_loop().time()
            await consumer.commit()
            assert asyncio.get_running_loop().time() - started < 1


async def _lag_is(world: World, lag: int) -> bool:
    return await world.lag() == lag
