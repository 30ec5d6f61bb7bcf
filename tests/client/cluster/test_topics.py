"""Topics by name, and offsets by time, against the real broker in virtual time."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic, Topics
from barnabas.client.errors import BrokerUnavailableError, TopicGoneError, UnknownTopicError
from barnabas.client.network.address import Address
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.client.scripted_broker import PORT, answer, api_versions, listen
from tests.client.virtual_world import TOPIC, World, virtually

BROKER = Address("broker", PORT)


def topics_of(*bootstrap: Address, give_up_ms: int = 60_000) -> Topics:
    cluster = Cluster(bootstrap or [BROKER], client_id="test", request_timeout_ms=1_000)
    return Topics(cluster, Retries(give_up_ms=give_up_ms))


@virtually
async def test_topics_are_found_by_name_in_the_order_asked_for(world: World) -> None:
    await world.topic("returns")
    await world.topic("orders", partition_count=3)
    found = await topics_of().find(["orders", "returns"])
    assert found == [
        Topic("orders", world.topic_ids["orders"], 3),
        Topic("returns", world.topic_ids["returns"], 1),
    ]
    assert await topics_of().find_all() == found


@virtually
async def test_the_error_names_missing_topics(world: World) -> None:
    await world.topic("orders")
    with pytest.raises(UnknownTopicError, match="There is no topic missing"):
        await topics_of().find(["orders", "missing"])


@virtually
async def test_offsets_are_found_for_the_start_the_end_and_a_time(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    late_ms = world.clock.wall_ms() + 1
    topics = topics_of()
    (topic,) = await topics.find([TOPIC])
    (partition,) = topic.partitions
    for at, offset in ((EARLIEST, 0), (LATEST, 2), (0, 0), (late_ms, None)):
        assert await topics.offsets([partition], at, Isolation.READ_COMMITTED) == {partition: offset}


@virtually
async def test_each_partition_can_have_another_time(world: World) -> None:
    await world.topic(TOPIC, "a", partition_count=2)
    await world.write(TOPIC, "b", "c", partition=1)
    topics = topics_of()
    (topic,) = await topics.find([TOPIC])
    first, second = topic.partitions
    assert await topics.offsets([first, second], {first: EARLIEST, second: LATEST}) == {first: 0, second: 2}


@virtually
async def test_a_restart_of_the_broker_is_waited_for(world: World) -> None:
    await world.topic(TOPIC, "a")
    topics = topics_of()
    (topic,) = await topics.find([TOPIC])
    world.kill()
    await world.start()
    assert await topics.offsets(topic.partitions, LATEST) == {topic.partitions[0]: 1}


@virtually
async def test_a_missing_broker_is_an_error_in_the_end(world: World) -> None:
    with pytest.raises(BrokerUnavailableError):
        await topics_of(Address("broker", 1), give_up_ms=5_000).find([TOPIC])


@virtually
async def test_a_deleted_topic_has_no_offsets(world: World) -> None:
    await world.topic(TOPIC, "a")
    topics = topics_of()
    await topics.find([TOPIC])
    with pytest.raises(TopicGoneError, match="was deleted"):
        await topics.offsets([TopicIdPartition(UUID(int=5), 0)], LATEST)


@virtually
async def test_internal_topics_are_found_only_by_name(world: World) -> None:
    def described(version: int, _: bytes) -> bytes:
        topics = [
            {
                "error_code": ErrorCode.none,
                "name": name,
                "topic_id": UUID(int=number),
                "is_internal": internal,
            }
            for number, (name, internal) in enumerate([("__consumer_offsets", True), ("orders", False)], 1)
        ]
        return answer("metadata", version, brokers=[], topics=topics)

    versions = api_versions({ApiKey.API_VERSIONS: (0, 3), ApiKey.METADATA: (12, 12)})
    await listen({ApiKey.API_VERSIONS: versions, ApiKey.METADATA: described}, 1)
    topics = topics_of(Address("broker", 1))
    assert [one.name for one in await topics.find(["__consumer_offsets"])] == ["__consumer_offsets"]
    assert [one.name for one in await topics.find_all()] == ["orders"]
