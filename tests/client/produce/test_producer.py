"""The producer of records, against the real broker in virtual time: order, batches, memory, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from barnabas.client import (
    CommitFailedError,
    ConsumerClosedError,
    GroupMetadata,
    MisuseError,
    ProduceError,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortedError,
    UnknownTopicError,
)
from barnabas.client.produce.partitioner import partition_of_key
from barnabas.protocol.errors import ErrorCode
from tests.client.consumer_world import (
    BytesConsumer,
    Records,
    all_that_come,
    consumer,
    partitions,
    producer,
    take,
    values,
)
from tests.client.virtual_world import TOPIC, World, virtually, with_settings

OUT = "results"
TOO_LARGE = b"y" * 1_100_000


async def read_all(world: World, topic: str = TOPIC, isolation: str = "read_uncommitted") -> Records:
    async with consumer(world, topic, group="checks", isolation_level=isolation) as one:
        one_poll = await all_that_come(one)
        one.seek_to_beginning()
        return await all_that_come(one) or one_poll


@virtually
async def test_a_record_arrives_as_it_was_sent(world: World) -> None:
    await world.topic(TOPIC, partition_count=3)
    async with producer(world) as one:
        headers = [("h", b"1"), ("n", None)]
        sent = await one.send_and_wait(TOPIC, b"value", key=b"key", headers=headers, timestamp_ms=1_234)
        index = partition_of_key(b"key", 3)
        assert sent == (TOPIC, index, 0, 1_234)
        assert (await one.send_and_wait(TOPIC, None, partition=2)).partition == 2
        with pytest.raises(MisuseError, match="orders has 3 partitions"):
            await one.send(TOPIC, b"x", partition=3)
        with pytest.raises(UnknownTopicError):
            await one.send("nowhere", b"x")
    found = {record.value: record for record in await read_all(world)}
    assert found[b"value"] == (TOPIC, index, 0, 1_234, b"key", b"value", tuple(headers))
    assert None in found


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@virtually
async def test_records_keep_their_order_and_share_batches(world: World, compression: str) -> None:
    await world.topic()
    async with producer(world, compression=compression, batch_bytes=1_000) as one:
        results = [await one.send(TOPIC, str(number).encode()) for number in range(500)]
        await one.flush()
        assert [result.result().offset for result in results] == list(range(500))
        assert 5 < one.metrics()["batch-send-total"] < 50
        assert one.metrics()["buffered-bytes"] == 0
    assert values(await read_all(world)) == [str(number) for number in range(500)]


@virtually
async def test_records_without_a_key_fill_one_partition_after_the_other(world: World) -> None:
    await world.topic(TOPIC, partition_count=3)
    async with producer(world, batch_bytes=1_000, linger_ms=100) as one:
        results = [await one.send(TOPIC, b"x" * 90) for _ in range(60)]
        await one.flush()
        order = [result.result().partition for result in results]
    changes = sum(before != after for before, after in pairwise(order))
    assert set(order) == {0, 1, 2}
    assert changes < 10


@virtually
async def test_each_record_is_written_once_though_the_broker_is_killed(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    async with producer(world, batch_bytes=50) as one:
        for number in range(200):
            await one.send(TOPIC, str(number).encode(), key=str(number % 7).encode())
            if number in (50, 120):
                await asyncio.sleep(0.001)
                world.kill()
                await world.start()
            if number == 160:
                world.cut_connections()
        await one.flush()
    records = await read_all(world)
    assert sorted(map(int, values(records))) == list(range(200))
    for index in range(2):
        numbers = [int(record.value or b"") for record in records if record.partition == index]
        assert numbers == sorted(numbers)


@virtually
async def test_a_refused_record_fails_alone(world: World) -> None:
    await world.topic()
    async with producer(world) as one:
        sent = [await one.send(TOPIC, value) for value in (b"a", TOO_LARGE, b"b")]
        await one.flush()
        with pytest.raises(ProduceError, match="message_too_large for orders-0: a batch of 1 record for"):
            await sent[1]
        assert (await sent[2]).offset == 1
    assert values(await read_all(world)) == ["a", "b"]


@virtually
async def test_send_waits_while_the_buffer_is_full(world: World) -> None:
    await world.topic()
    async with producer(world, buffer_bytes=1_000, linger_ms=60_000) as one:
        first = await one.send(TOPIC, b"x" * 800)
        second = asyncio.create_task(one.send(TOPIC, b"y" * 800))
        await asyncio.sleep(1)
        assert not second.done()
        await one.flush()
        assert first.done()
        await second
        with pytest.raises(MisuseError, match="larger than buffer_bytes"):
            await one.send(TOPIC, b"z" * 1_000)
    assert len(await read_all(world)) == 2, "a close delivers the records"


@virtually
async def test_records_that_a_close_cannot_deliver_fail(world: World) -> None:
    await world.topic()
    one = producer(world)
    await one.start()
    await one.send_and_wait(TOPIC, b"a")
    world.kill()
    lost = await one.send(TOPIC, b"b")
    await one.close(timeout_ms=1_000)
    with pytest.raises((ConsumerClosedError, ProduceError)):
        await lost
    with pytest.raises(ConsumerClosedError):
        await one.send(TOPIC, b"c")


@virtually
async def test_readers_of_committed_records_see_no_open_and_no_aborted_ones(world: World) -> None:
    await world.topic()
    async with producer(world, transactional_id="t") as one:
        with pytest.raises(MisuseError, match="call init_transactions first"):
            one.begin_transaction()
        await one.init_transactions()
        with pytest.raises(MisuseError, match="no transaction is open"):
            await one.send(TOPIC, b"outside")
        async with one.transaction():
            await one.send(TOPIC, b"a")
        with pytest.raises(ZeroDivisionError):
            async with one.transaction():
                await one.send_and_wait(TOPIC, b"b")
                raise ZeroDivisionError
        async with one.transaction():
            await one.send_and_wait(TOPIC, b"c")
            assert values(await read_all(world, isolation="read_committed")) == ["a"]
        async with one.transaction():
            pass
    assert values(await read_all(world, isolation="read_committed")) == ["a", "c"]
    assert values(await read_all(world)) == ["a", "b", "c"]


@virtually
async def test_a_transaction_with_a_refused_record_can_only_be_aborted(world: World) -> None:
    await world.topic()
    async with producer(world, transactional_id="t") as one:
        await one.init_transactions()
        one.begin_transaction()
        await one.send(TOPIC, b"a")
        await one.send(TOPIC, TOO_LARGE)
        with pytest.raises(TransactionAbortedError, match="must be aborted: message_too_large"):
            await one.commit_transaction()
        with pytest.raises(TransactionAbortedError):
            await one.send(TOPIC, b"b")
        await one.abort_transaction()
        async with one.transaction():
            await one.send(TOPIC, b"c")
    assert values(await read_all(world, isolation="read_committed")) == ["c"]


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "after_a_kill_of_the_broker"])
@virtually
async def test_a_new_producer_with_the_same_id_fences_the_old_one(world: World, is_killed: bool) -> None:
    await world.topic()
    async with producer(world, transactional_id="t") as old, producer(world, transactional_id="t") as new:
        await old.init_transactions()
        old.begin_transaction()
        await old.send_and_wait(TOPIC, b"old")
        if is_killed:
            world.kill()
            await world.start()
        await new.init_transactions()
        with pytest.raises(ProducerFencedError, match="another producer uses this transactional id"):
            await old.commit_transaction()
        with pytest.raises(ProducerFencedError):
            await old.send(TOPIC, b"x")
        async with new.transaction():
            await new.send(TOPIC, b"new")
    assert values(await read_all(world, isolation="read_committed")) == ["new"]


@with_settings(transaction__max__timeout__ms="900000")
@virtually
async def test_a_commit_survives_a_broker_that_restarts(world: World) -> None:
    await world.topic()
    async with producer(world, transactional_id="t") as one:
        await one.init_transactions()
        one.begin_transaction()
        await one.send_and_wait(TOPIC, b"a")
        world.kill()
        committing = asyncio.create_task(one.commit_transaction())
        await asyncio.sleep(2)
        await world.start()
        await committing
    assert values(await read_all(world, isolation="read_committed")) == ["a"]


class Doubler:
    """Consumes numbers, produces their doubles, and commits both together."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, count: int, *, fails_at: Sequence[int] = ()) -> None:
        """Works on `count` batches; fails while working on some of them."""
        async with (
            producer(self._world, transactional_id="doubler") as writer,
            consumer(self._world, enable_auto_commit=False) as reader,
        ):
            await writer.init_transactions()
            for number in range(count):
                records = await reader.poll(timeout=30, max_records=7)
                try:
                    async with writer.transaction():
                        for record in records:
                            await writer.send(OUT, str(2 * int(record.value or b"0")).encode())
                        next_offsets = {
                            TopicPartition(one.topic, one.partition): one.offset + 1 for one in records
                        }
                        await writer.send_offsets_to_transaction(next_offsets, reader.group_metadata())
                        if number in fails_at:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    await self._go_back(reader)

    async def _go_back(self, reader: BytesConsumer) -> None:
        for partition, committed in (await reader.committed(reader.assignment())).items():
            reader.seek(partition, 0 if committed is None else committed.offset)


@virtually
async def test_each_record_counts_once_despite_aborts_and_restarts(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    await world.topic(OUT)
    for number in range(60):
        await world.write(TOPIC, str(number), partition=number % 2)
    await Doubler(world).run(4, fails_at=[1, 3])
    world.kill()
    await world.start()
    await Doubler(world).run(10, fails_at=[2])
    results = values(await read_all(world, OUT, isolation="read_committed"))
    assert sorted(map(int, results)) == [2 * number for number in range(60)]


@virtually
async def test_offsets_of_a_member_that_was_removed_are_refused(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with producer(world, transactional_id="t") as writer, consumer(world) as reader:
        await writer.init_transactions()
        await take(reader, 1)
        metadata = reader.group_metadata()
        await reader.unsubscribe()
        async with consumer(world) as other:
            await other.poll(timeout=1)
            with pytest.raises(CommitFailedError):
                async with writer.transaction():
                    await writer.send_offsets_to_transaction({partitions(0)[0]: 1}, metadata)
        async with writer.transaction():
            await writer.send(TOPIC, b"b")


@virtually
async def test_a_consumer_waits_for_offsets_of_an_open_transaction(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    async with producer(world, transactional_id="t") as writer, consumer(world) as reader:
        await writer.init_transactions()
        writer.begin_transaction()
        await writer.send_offsets_to_transaction({partitions(0)[0]: 1}, GroupMetadata("readers"))
        assert await reader.poll(timeout=10) == []
        await writer.commit_transaction()
        assert values(await take(reader, 1)) == ["b"]


def test_the_codes_of_a_fenced_producer_have_one_error() -> None:
    from barnabas.client.errors import broker_error

    for code in (
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
    ):
        assert isinstance(broker_error(code, None), ProducerFencedError)
