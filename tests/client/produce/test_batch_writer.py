"""The idempotent producer, against the real broker in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import LATEST, Topics
from barnabas.client.consume.topic_reader import TopicReader
from barnabas.client.errors import BrokerUnavailableError, ProduceError, TopicGoneError
from barnabas.client.network.address import Address
from barnabas.client.produce.batch_delivery import BATCHES_MAX, Body
from barnabas.client.produce.batch_writer import BatchWriter
from barnabas.client.produce.transactions import Transactions
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import Compression, encode_record, iterate_headers
from barnabas.protocol.records import iterate_records
from tests.client.scripted_broker import PORT
from tests.client.virtual_world import TOPIC, World, virtually

RETRIES = Retries(give_up_ms=10_000)


def body(*values: str) -> Body:
    records = b"".join(encode_record(index, 0, None, value.encode()) for index, value in enumerate(values))
    return Body(records, Compression.NONE, len(values), 7, 7, "some records")


async def producer_of(world: World) -> tuple[BatchWriter, Cluster]:
    cluster = Cluster([Address("broker", PORT)], client_id="test", request_timeout_ms=1_000)
    writer = await Transactions(cluster).begin_idempotent()
    assert writer.transactional_id is None
    return BatchWriter(cluster, writer, RETRIES), cluster


async def values(cluster: Cluster, partition: TopicIdPartition, count: int) -> list[str]:
    found: list[str] = []
    async for fetched in TopicReader(cluster).read(partition, [(0, count - 1)]):
        for position, header in iterate_headers(fetched.records):
            assert header.base_sequence == header.base_offset
            found += [(one.value or b"").decode() for one in iterate_records(fetched.records, position)]
    return found


async def all_values(cluster: Cluster, partition: TopicIdPartition) -> list[str]:
    topics = Topics(cluster)
    await topics.find([TOPIC])
    end_offsets = await topics.offsets([partition], LATEST)
    end_offset = end_offsets[partition]
    assert end_offset is not None
    return await values(cluster, partition, end_offset)


@virtually
async def test_batches_are_written_in_their_order(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, cluster = await producer_of(world)
    for number in range(3 * BATCHES_MAX):
        await producer.write(TOPIC, partition, body(f"{number}-a", f"{number}-b"))
    await producer.flush()
    expected = [f"{number}-{which}" for number in range(3 * BATCHES_MAX) for which in "ab"]
    assert await values(cluster, partition, len(expected)) == expected


@virtually
async def test_each_batch_is_written_once_though_the_broker_is_killed(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, cluster = await producer_of(world)
    for number in range(20):
        await producer.write(TOPIC, partition, body(str(number)))
        if number in (5, 11):
            world.kill()
            await world.start()
        if number == 15:
            world.cut_connections()
    await producer.flush()
    assert await values(cluster, partition, 20) == [str(number) for number in range(20)]


@virtually
async def test_partitions_do_not_wait_for_each_other(world: World) -> None:
    await world.topic(TOPIC, partition_count=3)
    producer, cluster = await producer_of(world)
    for index in range(3):
        await producer.write(TOPIC, TopicIdPartition(world.topic_ids[TOPIC], index), body(str(index)))
    await producer.flush()
    for index in range(3):
        assert await values(cluster, TopicIdPartition(world.topic_ids[TOPIC], index), 1) == [str(index)]


@virtually
async def test_a_batch_that_is_too_large_is_an_error_with_its_label(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, cluster = await producer_of(world)
    await producer.write(TOPIC, partition, body("x"))
    await producer.write(TOPIC, partition, body("y" * 1_100_000))
    with pytest.raises(ProduceError, match=r"message_too_large for orders-0: some records \(1100\d+ bytes\)"):
        await producer.flush()
    with pytest.raises(ProduceError):
        await producer.write(TOPIC, partition, body("z"))
    assert await values(cluster, partition, 1) == ["x"]


@virtually
async def test_nothing_is_written_after_a_refused_batch(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, cluster = await producer_of(world)
    for value in ("a", "b" * 1_100_000, "c", "d"):
        await producer.write(TOPIC, partition, body(value))
    with pytest.raises(ProduceError):
        await producer.flush()
    assert await all_values(cluster, partition) == ["a"]


@virtually
async def test_nothing_is_written_after_a_batch_that_timed_out(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, cluster = await producer_of(world)
    await producer.write(TOPIC, partition, body("a"))
    await producer.flush()
    world.kill()
    for value in ("b", "c", "d"):
        await producer.write(TOPIC, partition, body(value))
    flushing = asyncio.create_task(producer.flush())
    await asyncio.sleep(RETRIES.give_up_ms / 1000 + 1)
    await world.start()
    with pytest.raises(BrokerUnavailableError):
        await flushing
    assert await all_values(cluster, partition) == ["a"]


@virtually
async def test_a_deleted_topic_is_an_error(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, _ = await producer_of(world)
    await world.admin.ask("delete_topics", topics=[{"name": TOPIC, "topic_id": None}])
    await producer.write(TOPIC, partition, body("x"))
    with pytest.raises(TopicGoneError):
        await producer.flush()


@virtually
async def test_a_missing_broker_is_an_error_in_the_end(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, _ = await producer_of(world)
    await producer.write(TOPIC, partition, body("x"))
    await producer.flush()
    world.kill()
    await producer.write(TOPIC, partition, body("y"))
    with pytest.raises(BrokerUnavailableError):
        await producer.flush()


@virtually
async def test_every_call_after_an_error_raises_it_without_waiting(world: World) -> None:
    await world.topic()
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    producer, _ = await producer_of(world)
    await producer.write(TOPIC, partition, body("y" * 1_100_000))
    async with asyncio.timeout(60):
        with pytest.raises(ProduceError):
            await producer.flush()
        for _ in range(BATCHES_MAX + 1):
            with pytest.raises(ProduceError):
                await producer.write(TOPIC, partition, body("z"))
