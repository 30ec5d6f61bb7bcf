"""DeleteTopics: by name, by id, and every form of duplicate."""

from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.delete_topics.v5.request import DeleteTopicsRequest as DeleteTopicsRequestByName
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest as DeleteTopicsRequestById
from kio.schema.delete_topics.v6.request import DeleteTopicState

from barnabas.broker.handlers.delete_topics import handle_delete_topics
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, milliseconds
from tests.broker.handlers.admin_broker import AdminBroker, admin_broker, ask

OTHER = UUID(int=99)
Asked = tuple[str | None, UUID | None]


def by_id(*topics: Asked) -> DeleteTopicsRequestById:
    states = tuple(
        DeleteTopicState(name=None if name is None else TopicName(name), topic_id=topic_id)
        for name, topic_id in topics
    )
    return DeleteTopicsRequestById(topics=states, timeout=milliseconds(1000))


def by_name(*names: str) -> DeleteTopicsRequestByName:
    return DeleteTopicsRequestByName(topic_names=tuple(map(TopicName, names)), timeout=milliseconds(1000))


async def results(broker: AdminBroker, *topics: Asked) -> list[tuple[object, ...]]:
    response = await ask(broker, handle_delete_topics, by_id(*topics))
    return [(one.name, one.topic_id, one.error_code, one.error_message) for one in response.responses]


async def id_of_new_topic(broker: AdminBroker, name: str) -> UUID:
    await broker.create(NewTopic(name, 1))
    return broker.metadata.image.topics_by_name[name].topic_id


async def test_a_topic_is_deleted_by_name_and_the_result_has_its_id(broker: AdminBroker) -> None:
    topic_id = await id_of_new_topic(broker, "t")
    assert await results(broker, ("t", None)) == [("t", topic_id, ErrorCode.none, None)]
    assert broker.metadata.image.topics_by_name == {}


async def test_a_topic_is_deleted_by_id_and_the_result_has_its_name(broker: AdminBroker) -> None:
    topic_id = await id_of_new_topic(broker, "t")
    assert await results(broker, (None, topic_id)) == [("t", topic_id, ErrorCode.none, None)]


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            [("x", None)],
            ErrorCode.unknown_topic_or_partition,
            "This server does not host this topic-partition.",
        ),
        ([(None, OTHER)], ErrorCode.unknown_topic_id, "This server does not host this topic ID."),
        ([(None, None)], ErrorCode.invalid_request, "Neither topic name nor id were specified."),
        ([("x", OTHER)], ErrorCode.invalid_request, "You may not specify both topic name and topic id."),
        ([("x", None), ("x", None)], ErrorCode.invalid_request, "Duplicate topic name."),
        ([(None, OTHER), (None, OTHER)], ErrorCode.invalid_request, "Duplicate topic id."),
    ],
)
async def test_a_topic_that_cannot_be_deleted_is_refused_with_the_reason(
    broker: AdminBroker, asked: list[Asked], code: ErrorCode, message: str
) -> None:
    assert await results(broker, *asked) == [(*asked[0], code, message)]


async def test_a_topic_named_by_name_and_by_id_is_not_deleted(broker: AdminBroker) -> None:
    topic_id = await id_of_new_topic(broker, "t")
    assert await results(broker, ("t", None), (None, topic_id)) == [
        (
            "t",
            topic_id,
            ErrorCode.invalid_request,
            "The provided topic name maps to an ID that was already supplied.",
        )
    ]
    assert "t" in broker.metadata.image.topics_by_name


@pytest.mark.parametrize("version", range(1, 6))
async def test_older_clients_delete_by_name(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 1))
    response = await ask(broker, handle_delete_topics, by_name("t", "x"), version=version)
    assert {(one.name, one.error_code) for one in response.responses} == {
        ("t", ErrorCode.none),
        ("x", ErrorCode.unknown_topic_or_partition),
    }


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.invalid_request), (3, ErrorCode.topic_deletion_disabled)]
)
async def test_nothing_is_deleted_with_delete_topic_enable_false(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    broker = await admin_broker(tmp_path, delete__topic__enable="false")
    await broker.create(NewTopic("t", 1))
    response = await ask(broker, handle_delete_topics, by_name("t"), version=version)
    assert [one.error_code for one in response.responses] == [code]
    assert "t" in broker.metadata.image.topics_by_name


async def test_a_disk_that_fails_is_an_error_for_each_topic(broker: AdminBroker) -> None:
    topic_id = await id_of_new_topic(broker, "t")
    broker.store.broken = True
    ((_, _, code, _),) = await results(broker, (None, topic_id))
    assert code is ErrorCode.kafka_storage_error
