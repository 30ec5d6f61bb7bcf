"""Ranges of offsets in transactions: shared partitions, aborts, kills, and commits in order."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from random import Random

import pytest

from barnabas.client import CommitFailedError, Producer, TransactionAbortedError
from tests.client.consume.sharing import drain, sharer, stable_and_ranges, until_shared, write_keyed
from tests.client.consumer_world import (
    GROUP,
    BytesConsumer,
    Records,
    all_that_come,
    producer,
    take,
    values,
)
from tests.client.copier import OUT, Copier, committed_copies
from tests.client.virtual_world import TOPIC, World, virtually

KEYS = [b"k%d" % number for number in range(10)]


class RangeCopier(Copier):
    """Commits ranges of offsets in the transactions of the copies."""

    async def _copy(self) -> None:
        async with (
            self._writer() as writer,
            sharer(
                self._world, enable_auto_commit=False, isolation_level="read_committed", max_records=4
            ) as reader,
        ):
            await writer.init_transactions()
            while not self._is_leaving:
                records = await reader.poll(timeout=1)
                try:
                    await self._copy_batch(writer, reader, records)
                except (ZeroDivisionError, CommitFailedError, TransactionAbortedError):
                    reader.seek_to_committed()

    async def _copy_batch(self, writer: Producer, reader: BytesConsumer, records: Records) -> None:
        async with writer.transaction():
            for record in records:
                place = f"{record.partition}-{record.offset}".encode()
                await writer.send(OUT, place, key=record.key, partition=0)
            await writer.send_offsets_to_transaction(reader.take_ranges(), reader.group_metadata())
            await self._pause_or_fail(0.2)


@pytest.mark.parametrize("order", ["none", "partition"])
@pytest.mark.seeds(2)
@virtually
async def test_each_record_is_copied_once_in_the_order_of_its_key_despite_aborts_and_kills(
    world: World, seed: int, order: str
) -> None:
    random = Random(seed)
    await world.topic(TOPIC, partition_count=2)
    await world.topic(OUT)
    await world.set_group_configs(GROUP, {"individual.commit.order": order})
    copiers, names = list[RangeCopier](), iter(range(100))
    written = {0: list[bytes](), 1: list[bytes]()}
    for _ in range(12):
        if len(copiers) < 4:
            copiers.append(RangeCopier(world, f"c{next(names)}", random))
        elif random.random() < 0.5:
            copiers.pop(random.randrange(len(copiers))).kill()
        index, keys = random.randrange(2), [random.choice(KEYS) for _ in range(random.randint(1, 12))]
        await write_keyed(world, keys, partition=index)
        written[index] += keys
        await asyncio.sleep(random.random() * 10)
    await asyncio.sleep(240)
    for copier in copiers:
        await copier.leave()
    await check_copies(world, written)


async def check_copies(world: World, written: dict[int, list[bytes]]) -> None:
    copies = values(await committed_copies(world))
    places = [tuple(map(int, copy.split("-"))) for copy in copies]
    expected = [(index, offset) for index, keys in written.items() for offset in range(len(keys))]
    assert sorted(places) == expected
    last: dict[tuple[int, bytes], int] = {}
    for index, offset in places:
        key = written[index][offset]
        assert last.get((index, key), -1) < offset
        last[index, key] = offset
    for index, keys in written.items():
        if keys:
            assert await stable_and_ranges(world, index) == (len(keys) - 1, [])


@virtually
async def test_after_an_abort_the_records_are_delivered_again(world: World) -> None:
    await world.topic(TOPIC, *"abcd")
    async with (
        producer(world, transactional_id="t") as writer,
        sharer(world, enable_auto_commit=False) as one,
    ):
        await writer.init_transactions()
        await take(one, 2)
        async with writer.transaction():
            await writer.send_offsets_to_transaction(one.take_ranges(), one.group_metadata())
        assert await stable_and_ranges(world) == (1, [])
        await take(one, 2)
        with suppress(ZeroDivisionError):
            async with writer.transaction():
                await writer.send_offsets_to_transaction(one.take_ranges(), one.group_metadata())
                raise ZeroDivisionError
        one.seek_to_committed()
        assert [record.offset for record in await take(one, 2)] == [2, 3]
        assert await stable_and_ranges(world) == (1, [])


@virtually
async def test_ranges_that_exceed_a_request_are_split_in_a_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.client.produce.transaction_ranges.REQUEST_RANGES_MAX", 2)
    await world.topic(TOPIC, *map(str, range(10)))
    async with (
        producer(world, transactional_id="t") as writer,
        sharer(world, enable_auto_commit=False) as one,
    ):
        await writer.init_transactions()
        for record in await take(one, 10):
            await record.__aenter__()
            if record.offset % 2:
                record.mark_processed()
        async with writer.transaction():
            await writer.send_offsets_to_transaction(one.take_ranges(), one.group_metadata())
        assert await stable_and_ranges(world) == (-1, [(n, n) for n in range(1, 10, 2)])


class Pair:
    """Two consumers that share a partition and hold its records, each with a producer; commits in order."""

    def __init__(self, world: World, stack: AsyncExitStack) -> None:
        self._world = world
        self._stack = stack
        self.writers: list[Producer] = []
        self.readers: list[BytesConsumer] = []

    async def begin(self, timeout_ms: int) -> tuple[int, int]:
        """The number of the member with the lowest record, and that of the other member."""
        await self._world.topic()
        await self._world.set_group_configs(GROUP, {"individual.commit.order": "partition"})
        for name in "ab":
            writer = producer(self._world, transactional_id=name, transaction_timeout_ms=timeout_ms)
            self.writers.append(await self._stack.enter_async_context(writer))
            await writer.init_transactions()
            reader = sharer(self._world, enable_auto_commit=False)
            self.readers.append(await self._stack.enter_async_context(reader))
        await until_shared(self.readers)
        await write_keyed(self._world, [KEYS[0], KEYS[1], KEYS[2], KEYS[3]] * 2)
        taken = await drain(self.readers)
        low = 0 if any(record.offset == 0 for record in taken[0]) else 1
        return low, 1 - low

    async def commit(self, number: int) -> None:
        """One transaction with all records of a member."""
        writer, reader = self.writers[number], self.readers[number]
        async with writer.transaction():
            await writer.send_offsets_to_transaction(reader.take_ranges(), reader.group_metadata())


@virtually
async def test_a_commit_in_order_waits_for_the_lower_offsets_of_the_other_sharer(world: World) -> None:
    async with AsyncExitStack() as stack:
        pair = Pair(world, stack)
        low, high = await pair.begin(timeout_ms=900_000)
        await world.topic(OUT)
        waiting = asyncio.create_task(pair.commit(high))
        await asyncio.sleep(50)
        await pair.writers[high].send_and_wait(OUT, b"a record of the same transaction")
        await asyncio.sleep(50)
        assert not waiting.done(), "it waits for longer than any other request"
        await pair.commit(low)
        await waiting
        await asyncio.sleep(1)
        assert await stable_and_ranges(world) == (7, [])


@virtually
async def test_a_wait_that_is_too_long_aborts_the_transaction_and_the_records_come_again(
    world: World,
) -> None:
    async with AsyncExitStack() as stack:
        pair = Pair(world, stack)
        low, high = await pair.begin(timeout_ms=20_000)
        with pytest.raises(TransactionAbortedError, match="transaction_abortable"):
            await pair.commit(high)
        reader = pair.readers[high]
        reader.seek_to_committed()
        again = await all_that_come(reader)
        assert again
        waiting = asyncio.create_task(pair.commit(high))
        await asyncio.sleep(1)
        await pair.commit(low)
        await waiting
        await asyncio.sleep(1)
        assert await stable_and_ranges(world) == (7, [])


@virtually
async def test_ranges_of_a_member_that_was_removed_are_refused(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with producer(world, transactional_id="t") as writer, sharer(world) as one:
        await writer.init_transactions()
        await take(one, 1)
        ranges, metadata = one.take_ranges(), one.group_metadata()
        await one.unsubscribe()
        async with sharer(world) as other:
            assert [record.offset for record in await take(other, 1)] == [0]
            with pytest.raises(CommitFailedError):
                async with writer.transaction():
                    await writer.send_offsets_to_transaction(ranges, metadata)
