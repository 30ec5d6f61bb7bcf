"""Consumers that share partitions by hashes of keys, against the real broker in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from contextlib import AsyncExitStack
from random import Random

import pytest

from barnabas.client import RebalanceListener, TopicPartition
from tests.client.consume.sharing import (
    SETTLING_SECONDS,
    drain,
    group_ranges,
    sharer,
    stable_and_ranges,
    until_shared,
    write_keyed,
)
from tests.client.consume.sharing_group import Journal, Member
from tests.client.consumer_world import Records, consumer, producer, take
from tests.client.virtual_world import TOPIC, World, virtually

KEYS = [b"k%d" % number for number in range(40)]


@virtually
async def test_five_consumers_share_three_partitions_and_each_record_is_read_once(world: World) -> None:
    await world.topic(TOPIC, partition_count=3)
    async with AsyncExitStack() as stack:
        consumers = [await stack.enter_async_context(sharer(world)) for _ in range(5)]
        await until_shared(consumers)
        sharers = Counter(one.partition for each in consumers for one in each.assignment())
        assert sorted(sharers.values()) == [1, 2, 2]
        for index in range(3):
            await write_keyed(world, [*KEYS, None, None, None], partition=index)
        taken = await drain(consumers)
        readers: dict[tuple[int, bytes], set[int]] = {}
        places: list[tuple[int, int]] = []
        for number, records in enumerate(taken):
            for record in records:
                places.append((record.partition, record.offset))
                if record.key is not None:
                    readers.setdefault((record.partition, record.key), set()).add(number)
        assert sorted(places) == [(index, offset) for index in range(3) for offset in range(43)]
        assert all(len(numbers) == 1 for numbers in readers.values()), "a key has one reader"
        for one in consumers:
            await one.commit()
        for index in range(3):
            assert await stable_and_ranges(world, index) == (42, [])


@pytest.mark.seeds(3)
@virtually
async def test_members_come_and_go_and_each_record_is_committed_once_in_the_order_of_its_key(
    world: World, seed: int
) -> None:
    random = Random(seed)
    partition_count = random.choice([1, 2, 3])
    await world.topic(TOPIC, partition_count=partition_count)
    written: dict[int, list[bytes | None]] = {index: [] for index in range(partition_count)}
    journal, members, names = Journal(), list[Member](), iter(range(1_000))
    for _ in range(30):
        await act(world, random, members, journal, next(names))
        keys: list[bytes | None] = [random.choice([*KEYS[:10], None]) for _ in range(random.randint(1, 30))]
        index = random.randrange(partition_count)
        await write_keyed(world, keys, partition=index)
        written[index] += keys
        await asyncio.sleep(random.random() * 8)
    last = Member(world, "last", journal, random)
    last.start()
    members.append(last)
    await asyncio.sleep(180)
    for member in members:
        await member.leave()
    journal.check(written)
    for index, of_partition in written.items():
        if of_partition:
            assert await stable_and_ranges(world, index) == (len(of_partition) - 1, [])


async def act(world: World, random: Random, members: list[Member], journal: Journal, number: int) -> None:
    """A member joins, leaves or is killed, the broker is killed, or nothing happens."""
    choice = random.random()
    if len(members) < 5 and choice < 0.35:
        member = Member(world, f"m{number}", journal, random)
        member.start()
        members.append(member)
    elif members and choice < 0.5:
        await members.pop(random.randrange(len(members))).leave()
    elif members and choice < 0.65:
        members.pop(random.randrange(len(members))).kill()
    elif choice < 0.7:
        journal.broker_was_killed = True
        world.kill()
        await asyncio.sleep(random.random() * 20)
        await world.start()


@virtually
async def test_a_consumer_that_joins_gets_no_record_that_was_processed_before(world: World) -> None:
    await world.topic()
    await write_keyed(world, KEYS)
    async with sharer(world, auto_commit_interval_ms=3_600_000) as first:
        assert len(await take(first, 40)) == 40
        async with sharer(world) as second:
            assert await until_shared([first, second]) == [[], []]
            assert await drain([first, second]) == [[], []]
            assert await stable_and_ranges(world) == (39, [])
            await write_keyed(world, KEYS)
            early, late = await drain([first, second])
            assert {record.key for record in early} | {record.key for record in late} == set(KEYS)
            assert early
            assert late
        assert await drain([first], seconds=SETTLING_SECONDS) == [[]], "the close has committed them"
    assert await stable_and_ranges(world) == (79, [])


@virtually
async def test_after_a_share_is_given_up_its_records_cannot_be_committed(world: World) -> None:
    await world.topic()
    await write_keyed(world, KEYS)
    async with sharer(world, enable_auto_commit=False) as first:
        held = await take(first, 40)
        async with sharer(world, enable_auto_commit=False) as second:
            again = await until_shared([first, second])
            for record in held:
                record.mark_processed()
            await first.commit_ranges({})
            assert await stable_and_ranges(world) == (-1, [])
            again += await drain([first, second])
            offsets = [record.offset for records in again for record in records]
            assert sorted(offsets) == list(range(40))


@virtually
async def test_single_records_that_are_processed_in_the_listener_are_committed_before_the_share_moves(
    world: World,
) -> None:
    await world.topic()
    await write_keyed(world, KEYS)
    held: Records = []

    class Finishing(RebalanceListener):
        async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
            for record in held:
                record.mark_processed()

    async with sharer(world, enable_auto_commit=False, listener=Finishing()) as first:
        held += await take(first, 40)
        async with sharer(world, enable_auto_commit=False) as second:
            assert await until_shared([first, second]) == [[], []]
            assert await drain([first, second]) == [[], []]


@virtually
async def test_a_range_in_a_shared_partition_commits_own_records_only(world: World) -> None:
    await world.topic()
    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(sharer(world, enable_auto_commit=False)) for _ in range(2)
        ]
        await until_shared(consumers)
        await write_keyed(world, KEYS)
        early, late = await drain(consumers)
        await consumers[0].commit_ranges({TopicPartition(TOPIC, 0): [(0, 39)]})
        committed = await group_ranges(world)
        assert committed is not None
        assert all(record.offset in committed for record in early)
        assert not any(record.offset in committed for record in late)


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
@virtually
async def test_markers_and_aborted_records_do_not_hold_a_shared_partition_back(
    world: World, isolation_level: str
) -> None:
    await world.topic()
    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(sharer(world, isolation_level=isolation_level)) for _ in range(3)
        ]
        await until_shared(consumers)
        writer = await stack.enter_async_context(producer(world, transactional_id="t"))
        await writer.init_transactions()
        for number, key in enumerate(KEYS):
            writer.begin_transaction()
            await writer.send_and_wait(TOPIC, key, key=key)
            await (writer.abort_transaction() if number % 3 == 0 else writer.commit_transaction())
        taken = await drain(consumers)
        count = 40 if isolation_level == "read_uncommitted" else 26
        assert sum(map(len, taken)) == count
        for one in consumers:
            await one.commit()
        assert await stable_and_ranges(world) == (79, [])


@virtually
async def test_sharers_do_not_receive_the_batches_of_other_keys(world: World) -> None:
    await world.topic()
    async with AsyncExitStack() as stack:
        consumers = [await stack.enter_async_context(sharer(world)) for _ in range(4)]
        await until_shared(consumers)
        await write_keyed(world, KEYS * 25, batch_records=1)
        taken = await drain(consumers)
        assert sum(map(len, taken)) == 1_000
        received = sorted(one.metrics()["bytes-consumed-total"] for one in consumers)
        whole = received[-1]
        assert received[-2] < 0.5 * whole, "one of them receives everything, for the offsets without records"
        await write_keyed(world, KEYS[:1] * 20, batch_records=1)
        assert sorted(map(len, await drain(consumers))) == [0, 0, 0, 20]
        for one in consumers:
            assert await one.position(TopicPartition(TOPIC, 0)) == 1_020
        assert all(one.metrics()["records-lag"] == 0 for one in consumers)


@virtually
@pytest.mark.interpreted
async def test_a_broker_that_ignores_hash_ranges_in_fetches_only_sends_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.protocol.decode.fetch.HASH_RANGE_TAG", -1)
    await world.topic()
    async with AsyncExitStack() as stack:
        consumers = [await stack.enter_async_context(sharer(world)) for _ in range(3)]
        await until_shared(consumers)
        await write_keyed(world, KEYS * 5, batch_records=1)
        assert sum(map(len, await drain(consumers))) == 200
        assert len({one.metrics()["bytes-consumed-total"] for one in consumers}) == 1
    assert await stable_and_ranges(world) == (199, [])


@virtually
async def test_a_broker_that_restarts_moves_no_share(world: World) -> None:
    await world.topic()
    async with AsyncExitStack() as stack:
        consumers = [await stack.enter_async_context(sharer(world)) for _ in range(3)]
        await until_shared(consumers)
        await write_keyed(world, KEYS)
        before = await drain(consumers)
        world.kill()
        await asyncio.sleep(3)
        await world.start()
        await write_keyed(world, KEYS)
        after = await drain(consumers, seconds=SETTLING_SECONDS)
        assert [{one.key for one in records} for records in before] == [
            {one.key for one in records} for records in after
        ]
    assert await stable_and_ranges(world) == (79, [])


@virtually
async def test_a_consumer_without_individual_commits_keeps_its_partition_whole(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    async with (
        consumer(world) as ordinary,
        sharer(world) as first,
        sharer(world) as second,
    ):
        everyone = [ordinary, first, second]
        await until_shared(everyone)
        for index in range(2):
            await write_keyed(world, KEYS, partition=index)
        taken = await drain(everyone)
        assert sum(map(len, taken)) == 80
        assert len(taken[0]) == 40
        assert first.assignment() == second.assignment()
        assert ordinary.assignment().isdisjoint(first.assignment())
