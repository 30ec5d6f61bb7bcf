"""Reading ranges of offsets from the real broker in virtual time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from unittest.mock import patch
from uuid import UUID

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import Topic, Topics
from barnabas.client.consume.topic_reader import FetchedRecords, ReadSettings, TopicReader
from barnabas.client.errors import BrokerUnavailableError, RecordsGoneError, TopicGoneError
from barnabas.client.network.address import Address
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from tests.client.scripted_broker import PORT
from tests.client.virtual_world import TOPIC, World, virtually

BATCHES = 30
PER_BATCH = 5


def reader(*, fetch_bytes: int = 10**6, give_up_ms: int = 60_000) -> TopicReader:
    cluster = Cluster([Address("broker", PORT)], client_id="test", request_timeout_ms=1_000)
    return TopicReader(cluster, ReadSettings(fetch_bytes=fetch_bytes, retries=Retries(give_up_ms=give_up_ms)))


async def filled(world: World) -> TopicIdPartition:
    """A topic with batches of a few records of a kilobyte each."""
    await world.topic()
    for number in range(BATCHES):
        await world.write(TOPIC, *(f"{number * PER_BATCH + index:01000d}" for index in range(PER_BATCH)))
    return TopicIdPartition(world.topic_ids[TOPIC], 0)


def offsets(fetched: FetchedRecords) -> list[int]:
    return [
        record.offset
        for position, _ in iterate_headers(fetched.records)
        for record in iterate_records(fetched.records, position)
    ]


async def read(
    topic_reader: TopicReader, partition: TopicIdPartition, *ranges: tuple[int, int]
) -> tuple[list[int], int]:
    """The offsets in the answers, and the number of answers."""
    found: list[int] = []
    count = 0
    async for fetched in topic_reader.read(partition, ranges):
        found += offsets(fetched)
        count += 1
    return found, count


def batches_of(*ranges: Sequence[int]) -> list[int]:
    """All offsets of the batches that contain one of these."""
    numbers = sorted({offset // PER_BATCH for one in ranges for offset in one})
    return [number * PER_BATCH + index for number in numbers for index in range(PER_BATCH)]


@virtually
async def test_a_range_is_returned_as_whole_batches(world: World) -> None:
    partition = await filled(world)
    found, _ = await read(reader(), partition, (0, 149))
    assert found == list(range(150))


@virtually
async def test_one_record_costs_one_fetch_of_its_batch(world: World) -> None:
    partition = await filled(world)
    found, count = await read(reader(fetch_bytes=1), partition, (12, 12))
    assert (found, count) == (batches_of([12]), 1)


@virtually
async def test_a_large_range_needs_several_answers(world: World) -> None:
    partition = await filled(world)
    found, count = await read(reader(fetch_bytes=20_000), partition, (0, 149))
    assert found == list(range(150))
    assert count > 5


@virtually
async def test_offsets_between_ranges_are_skipped(world: World) -> None:
    partition = await filled(world)
    found, count = await read(reader(fetch_bytes=1), partition, (3, 6), (101, 101), (149, 149))
    assert found == batches_of(range(3, 7), [101], [149])
    assert count == 4


@virtually
async def test_a_restart_of_the_broker_is_waited_for(world: World) -> None:
    partition = await filled(world)
    found: list[int] = []
    async for fetched in reader(fetch_bytes=20_000).read(partition, [(0, 149)]):
        if not found:
            world.kill()
            await world.start()
        found += offsets(fetched)
    assert found == list(range(150))


@virtually
async def test_a_lost_connection_is_opened_again(world: World) -> None:
    partition = await filled(world)
    found: list[int] = []
    async for fetched in reader(fetch_bytes=20_000).read(partition, [(0, 149)]):
        world.cut_connections()
        found += offsets(fetched)
    assert found == list(range(150))


@virtually
async def test_records_that_do_not_exist_yet_are_waited_for(world: World) -> None:
    await world.topic(TOPIC, "a")
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    found: list[int] = []
    async for fetched in reader().read(partition, [(0, 1)]):
        found += offsets(fetched)
        if found == [0]:
            await world.write(TOPIC, "b")
    assert found == [0, 1]


@virtually
async def test_records_that_never_arrive_are_an_error(world: World) -> None:
    await world.topic(TOPIC, "a")
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    with pytest.raises(BrokerUnavailableError, match="has no records from offset 1 on; it ends at 1"):
        await read(reader(give_up_ms=3_000), partition, (1, 1))


@virtually
async def test_an_offset_after_the_end_is_gone(world: World) -> None:
    partition = await filled(world)
    with pytest.raises(RecordsGoneError, match="it holds 0 to 150, exclusive"):
        await read(reader(), partition, (151, 160))


@virtually
async def test_an_offset_before_the_start_is_gone(world: World) -> None:
    partition = await filled(world)
    asked = {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 20}]}
    await world.admin.ask("delete_records", topics=[asked])
    with pytest.raises(RecordsGoneError) as gone:
        await read(reader(), partition, (0, 149))
    assert (gone.value.offset, gone.value.log_start_offset, gone.value.end_offset) == (0, 20, 150)


@virtually
async def test_a_deleted_topic_is_gone_though_its_name_exists_again(world: World) -> None:
    partition = await filled(world)
    await world.admin.ask("delete_topics", topics=[{"name": TOPIC, "topic_id": None}])
    await world.topic(TOPIC, "another")
    with pytest.raises(TopicGoneError, match=str(partition.topic_id)):
        await read(reader(), partition, (0, 0))


@virtually
async def test_no_range_costs_no_fetch(world: World) -> None:
    assert await read(reader(), TopicIdPartition(UUID(int=9), 0)) == ([], 0)


@virtually
async def test_a_reader_that_stops_early_leaves_no_fetch_behind(world: World) -> None:
    partition = await filled(world)
    topic_reader = reader(fetch_bytes=20_000)
    stream = topic_reader.read(partition, [(0, 149)])
    await anext(stream)
    await stream.aclose()
    assert 7 in (await read(topic_reader, partition, (7, 7)))[0]


@virtually
async def test_a_topic_that_is_deleted_while_its_offsets_are_looked_up_is_gone(world: World) -> None:
    partition = await filled(world)
    asked = {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 20}]}
    await world.admin.ask("delete_records", topics=[asked])
    find = Topics.find

    async def find_too_late(topics: Topics, names: Collection[str]) -> list[Topic]:
        await world.admin.ask("delete_topics", topics=[{"name": TOPIC, "topic_id": None}])
        return await find(topics, names)

    with patch.object(Topics, "find", find_too_late), pytest.raises(TopicGoneError, match="orders"):
        await read(reader(), partition, (0, 149))
