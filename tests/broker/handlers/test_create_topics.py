"""CreateTopics: the results for a new topic and for a refused one."""

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

from barnabas.broker.handlers.create_topics import handle_create_topics
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i16, i32
from tests.broker.handlers.admin_broker import AdminBroker, ask


def topic(
    name: str, partition_count: int = 1, assignments: tuple[int, ...] = (), **configs: str | None
) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partition_count),
        replication_factor=i16(-1),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=i32(index), broker_ids=(BrokerId(1),))
            for index in assignments
        ),
        configs=tuple(
            CreatableTopicConfig(name=key.replace("__", "."), value=value) for key, value in configs.items()
        ),
    )


def request(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


async def test_the_result_has_the_id_the_size_and_the_settings(broker: AdminBroker) -> None:
    response = await ask(broker, handle_create_topics, request(topic("t", 2, retention__ms="5000")))
    (result,) = response.topics
    assert (result.error_code, result.error_message) == (ErrorCode.none, None)
    assert result.topic_id == broker.metadata.image.topics_by_name["t"].topic_id
    assert (result.num_partitions, result.replication_factor, result.topic_config_error_code) == (2, 1, 0)
    assert len(result.configs) == 37
    settings = {one.name: (one.value, one.config_source) for one in result.configs}
    assert settings["retention.ms"] == ("5000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)
    assert not any(one.read_only or one.is_sensitive for one in result.configs)


async def test_replicas_may_be_assigned_by_the_request(broker: AdminBroker) -> None:
    response = await ask(broker, handle_create_topics, request(topic("t", -1, assignments=(0, 1))))
    assert response.topics[0].num_partitions == 2


async def test_a_refused_topic_has_a_message_and_no_id(broker: AdminBroker) -> None:
    await ask(broker, handle_create_topics, request(topic("t")))
    response = await ask(broker, handle_create_topics, request(topic("t"), topic("u", retention__ms="x")))
    exists, invalid = response.topics
    assert (exists.error_code, exists.error_message) == (
        ErrorCode.topic_already_exists,
        "Topic 't' already exists.",
    )
    assert (exists.topic_id, exists.num_partitions, exists.configs) == (None, -1, ())
    assert (invalid.error_code, invalid.error_message) == (
        ErrorCode.invalid_config,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    )


async def test_a_duplicate_name_has_one_result_and_the_others_are_created(broker: AdminBroker) -> None:
    response = await ask(broker, handle_create_topics, request(topic("d"), topic("t"), topic("d", 2)))
    assert [(one.name, one.error_code, one.error_message) for one in response.topics] == [
        ("t", ErrorCode.none, None),
        ("d", ErrorCode.invalid_request, "Duplicate topic name."),
    ]


async def test_validation_alone_creates_nothing(broker: AdminBroker) -> None:
    response = await ask(broker, handle_create_topics, request(topic("t"), validate_only=True))
    assert response.topics[0].error_code is ErrorCode.none
    assert broker.metadata.image.topics_by_name == {}


async def test_a_disk_that_fails_is_an_error_for_each_topic(broker: AdminBroker) -> None:
    broker.store.broken = True
    response = await ask(broker, handle_create_topics, request(topic("a"), topic("b")))
    assert [one.error_code for one in response.topics] == [ErrorCode.kafka_storage_error] * 2


@pytest.mark.parametrize("version", range(2, 8))
async def test_every_version_can_be_answered(broker: AdminBroker, version: int) -> None:
    response = await ask(broker, handle_create_topics, request(topic("t"), topic("")), version=version)
    assert [one.error_code for one in response.topics] == [
        ErrorCode.none,
        ErrorCode.invalid_topic_exception,
    ]
