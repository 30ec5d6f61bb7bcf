"""CreatePartitions: more partitions, duplicate names, and validation alone."""

from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

from barnabas.broker.handlers.create_partitions import handle_create_partitions
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i32, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, ask


def topic(name: str, count: int, *node_ids: int) -> CreatePartitionsTopic:
    assignments = tuple(CreatePartitionsAssignment(broker_ids=(BrokerId(node_id),)) for node_id in node_ids)
    return CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=assignments or None)


async def results(
    broker: AdminBroker, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
) -> list[tuple[object, ...]]:
    request = CreatePartitionsRequest(topics=topics, timeout=milliseconds(1000), validate_only=validate_only)
    response = await ask(broker, handle_create_partitions, request, version=version)
    return [(one.name, one.error_code, one.error_message) for one in response.results]


def size(broker: AdminBroker) -> int:
    return len(broker.metadata.image.topics_by_name["t"].partitions)


async def test_a_topic_grows(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await results(broker, topic("t", 3, 1, 1), version=0) == [("t", ErrorCode.none, None)]
    assert size(broker) == 3


async def test_a_topic_does_not_shrink(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 2))
    message = "The topic t currently has 2 partition(s); 1 would not be an increase."
    assert await results(broker, topic("t", 1)) == [("t", ErrorCode.invalid_partitions, message)]


async def test_a_duplicate_name_has_one_result(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await results(broker, topic("t", 2), topic("t", 3)) == [
        ("t", ErrorCode.invalid_request, "Duplicate topic name.")
    ]
    assert size(broker) == 1


async def test_validation_alone_adds_nothing(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await results(broker, topic("t", 3), validate_only=True) == [("t", ErrorCode.none, None)]
    assert size(broker) == 1


async def test_an_unknown_topic_is_refused(broker: AdminBroker) -> None:
    assert await results(broker, topic("x", 3)) == [("x", ErrorCode.unknown_topic_or_partition, None)]


async def test_a_disk_that_fails_is_an_error_for_each_topic(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    broker.store.broken = True
    assert [code for _, code, _ in await results(broker, topic("t", 3))] == [ErrorCode.kafka_storage_error]
