"""Consumers that share a group: rebalances, members that are killed or too slow, restarts of the broker."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from barnabas.client import CommitFailedError, MisuseError, WrongGroupTypeError
from tests.client.consumer_world import (
    BytesConsumer,
    Journal,
    all_that_come,
    consumer,
    partitions,
    take,
    values,
)
from tests.client.virtual_world import TOPIC, World, eventually, virtually
from tests.simulation.virtual_loop import Process

REBALANCE_SECONDS = 15
"""More than some heartbeats."""


async def write_numbers(world: World, numbers: range, partition_count: int) -> None:
    for number in numbers:
        await world.write(TOPIC, str(number), partition=number % partition_count)


async def has(one: BytesConsumer, *indexes: int) -> bool:
    return one.assignment() == frozenset(partitions(*indexes))


@virtually
async def test_a_rebalance_neither_loses_nor_repeats_a_record(world: World) -> None:
    await world.topic(TOPIC, partition_count=4)

    async def read(one: BytesConsumer) -> list[str]:
        return [(record.value or b"").decode() async for record in one]

    first, second = consumer(world), consumer(world)
    await first.start()
    reading = [asyncio.create_task(read(first))]
    await write_numbers(world, range(100), 4)
    await second.start()
    reading.append(asyncio.create_task(read(second)))
    for number in range(100, 200):
        await write_numbers(world, range(number, number + 1), 4)
        await asyncio.sleep(0.2)
    assert len(first.assignment()) == len(second.assignment()) == 2
    assert first.assignment() | second.assignment() == frozenset(partitions(0, 1, 2, 3))
    await second.close()
    await write_numbers(world, range(200, 300), 4)
    await asyncio.sleep(REBALANCE_SECONDS)
    await first.close()
    seen = [value for values_of_one in await asyncio.gather(*reading) for value in values_of_one]
    assert sorted(seen, key=int) == [str(number) for number in range(300)]


@virtually
async def test_a_consumer_cannot_join_a_group_of_the_other_type(world: World) -> None:
    await world.topic(TOPIC)
    async with world.consumer(group="sharers"), consumer(world, group="readers"):
        refused = (
            (consumer(world, group="sharers"), "sharers is not a consumer group"),
            (world.consumer(group="readers"), "readers is not a share group"),
        )
        for one, reason in refused:
            async with one:
                with pytest.raises(WrongGroupTypeError, match=reason):
                    await one.poll(timeout=60)


@virtually
async def test_a_commit_in_on_revoked_succeeds(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    await write_numbers(world, range(20), 2)
    journal = Journal(commits=True)
    async with consumer(world, listener=journal, enable_auto_commit=False) as one:
        journal.consumer = one
        await take(one, 20)
        async with consumer(world, enable_auto_commit=False) as other:
            polling = asyncio.create_task(one.poll(timeout=60))
            assert await all_that_come(other, seconds=30) == []
            assert await polling == []
            assert len(one.assignment()) == len(other.assignment()) == 1
    assert [call for call, _ in journal.calls] == ["assigned", "revoked", "revoked"]
    assert journal.calls[0] == ("assigned", [0, 1])


@virtually
async def test_the_partitions_of_a_killed_consumer_go_to_the_others(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    await write_numbers(world, range(10), 2)
    process = Process("reader")
    doomed = consumer(world, auto_commit_interval_ms=1_000)

    async def begin() -> None:
        await doomed.start()
        await take(doomed, 4)
        await doomed.poll(timeout=3)

    await process.run(begin())
    process.kill()
    async with consumer(world) as one:
        assert len(await take(one, 6)) == 6, "the polls before the last one were committed"
        await eventually(lambda: has(one, 0, 1))


@virtually
async def test_a_broker_that_restarts_delays_its_consumers_only(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    journal = Journal()
    async with consumer(world, listener=journal) as one:
        assert values(await take(one, 3)) == ["a", "b", "c"]
        await one.commit()
        world.kill()
        await asyncio.sleep(3)
        await world.start()
        await world.write(TOPIC, "d")
        assert values(await take(one, 1)) == ["d"]
        await one.commit()
    assert journal.calls == [("assigned", [0]), ("revoked", [0])], "the membership is durable"


@virtually
async def test_a_member_that_was_removed_loses_its_partitions_and_joins_again(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    journal = Journal()
    async with consumer(world, listener=journal, enable_auto_commit=False) as one:
        await take(one, 3)
        await world.admin.ask(
            "consumer_group_heartbeat",
            group_id="readers",
            member_id=one.member_id,
            member_epoch=-1,
            rebalance_timeout_ms=-1,
        )
        with pytest.raises(CommitFailedError, match="Other members of the group readers get the records"):
            await one.commit()
        assert values(await take(one, 3)) == ["a", "b", "c"]
        assert [call for call, _ in journal.calls] == ["assigned", "lost", "assigned"]


@virtually
async def test_an_application_that_does_not_poll_in_time_hands_its_partitions_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic(TOPIC, *"abc")
    journal = Journal()
    async with (
        consumer(world, listener=journal, max_poll_interval_ms=10_000, enable_auto_commit=False) as slow,
        consumer(world) as other,
    ):
        (record,) = await slow.poll(max_records=1)
        with caplog.at_level(logging.WARNING, "barnabas.client"):
            waiting = asyncio.create_task(take(other, 3))
            await asyncio.sleep(11)
        (line,) = [one.message for one in caplog.records if "max_poll_interval_ms" in one.message]
        assert "(10000 ms): the consumer leaves the group readers until the next poll" in line
        assert values(await waiting) == ["a", "b", "c"]
        with pytest.raises(CommitFailedError, match="the application did not poll in time"):
            await slow.commit()
        assert await slow.poll(timeout=REBALANCE_SECONDS) == []
        assert ("lost", [record.partition]) in journal.calls
        assert (await world.group_members("readers")) == 2


@virtually
async def test_a_pattern_finds_topics_that_are_created_later(world: World) -> None:
    await world.topic("orders-1", "a")
    await world.topic("returns", "x")
    async with consumer(world, pattern="orders-.*") as one:
        assert values(await take(one, 1)) == ["a"]
        await world.topic("orders-2", "b")
        async with asyncio.timeout(900):
            assert values(await take(one, 1, within_seconds=900)) == ["b"]
        one.subscribe(["returns"])
        assert values(await take(one, 1)) == ["x"]
        assert one.subscription() == {"returns"}


@virtually
async def test_a_static_member_gets_its_partitions_back_without_a_rebalance(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    journal = Journal()
    async with consumer(world, listener=journal) as other:
        reading = asyncio.create_task(other.poll(timeout=60))
        for _ in range(2):
            async with consumer(world, group_instance_id="one") as static:
                polling = asyncio.create_task(static.poll(timeout=20))
                await eventually(partial(_has_one, static))
                assert await polling == []
        assert await reading == []
    changes = [indexes for call, indexes in journal.calls if call != "assigned"]
    assert len(changes) == 2, "one partition was given up once; the other at the end"


async def _has_one(one: BytesConsumer) -> bool:
    return len(one.assignment()) == 1


@virtually
async def test_unsubscribe_gives_everything_up_until_the_next_subscription(world: World) -> None:
    await world.topic(TOPIC, *"ab")
    journal = Journal()
    async with consumer(world, listener=journal) as one:
        await take(one, 1)
        await one.unsubscribe()
        assert one.assignment() == frozenset()
        assert one.subscription() == frozenset()
        with pytest.raises(MisuseError, match="subscribed to no topic"):
            await one.poll()
        one.subscribe([TOPIC])
        assert values(await take(one, 1)) == ["b"]
    assert [call for call, _ in journal.calls] == ["assigned", "revoked", "assigned", "revoked"]


@virtually
async def test_a_listener_that_fails_is_raised_by_the_poll_and_the_rebalance_goes_on(world: World) -> None:
    await world.topic(TOPIC, "a")

    class Failing(Journal):
        async def on_assigned(self, partitions: object) -> None:
            raise ZeroDivisionError

    async with consumer(world, listener=Failing()) as one:
        with pytest.raises(ZeroDivisionError):
            await one.poll()
        assert values(await take(one, 1)) == ["a"]
