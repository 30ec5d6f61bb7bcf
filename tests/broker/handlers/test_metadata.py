"""Metadata: topics by name and by id, all topics, and automatic creation."""

from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequestWithCluster
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic

from barnabas.broker.handlers.metadata import handle_metadata
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName
from tests.broker.handlers.admin_broker import AdminBroker, admin_broker, ask

UNKNOWN_ID = UUID(int=99)


def request(
    *topics: tuple[str | None, UUID | None],
    everything: bool = False,
    create: bool = False,
    operations: bool = False,
) -> MetadataRequest:
    asked = tuple(
        MetadataRequestTopic(topic_id=topic_id, name=None if name is None else TopicName(name))
        for name, topic_id in topics
    )
    return MetadataRequest(
        topics=None if everything else asked,
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
    )


async def topics(
    broker: AdminBroker, asked: MetadataRequest, version: int = 13
) -> list[tuple[str | None, ErrorCode]]:
    response = await ask(broker, handle_metadata, asked, version=version)
    return [(topic.name, topic.error_code) for topic in response.topics]


async def test_the_broker_has_the_address_of_the_clients_listener(broker: AdminBroker) -> None:
    response = await ask(broker, handle_metadata, request())
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port, node.rack) == (1, "broker.example", 19092, None)
    assert (response.cluster_id, response.controller_id) == ("cluster", 1)
    assert response.topics == ()


async def test_a_topic_has_its_partitions_with_leader_and_epoch(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 2))
    topic = (await ask(broker, handle_metadata, request(("t", None)))).topics[0]
    assert topic.topic_id == broker.metadata.image.topics_by_name["t"].topic_id
    assert [
        (
            one.partition_index,
            one.leader_id,
            one.leader_epoch,
            one.replica_nodes,
            one.isr_nodes,
            one.offline_replicas,
        )
        for one in topic.partitions
    ] == [(0, 1, 0, (1,), (1,), ()), (1, 1, 0, (1,), (1,), ())]
    assert topic.topic_authorized_operations == -(2**31)


async def test_authorized_operations_are_those_of_kafka_without_an_authorizer(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    topic = (await ask(broker, handle_metadata, request(("t", None), operations=True))).topics[0]
    assert topic.topic_authorized_operations == 3576


async def test_topics_are_found_by_id_and_the_name_is_ignored(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    topic_id = broker.metadata.image.topics_by_name["t"].topic_id
    assert await topics(broker, request((None, topic_id), ("other", topic_id))) == [
        ("t", ErrorCode.none),
        ("t", ErrorCode.none),
    ]


@pytest.mark.parametrize(
    ("name", "topic_id", "code"),
    [
        ("unknown", None, ErrorCode.unknown_topic_or_partition),
        ("a b", None, ErrorCode.invalid_topic_exception),
        ("", None, ErrorCode.invalid_topic_exception),
        (None, UNKNOWN_ID, ErrorCode.unknown_topic_id),
    ],
)
async def test_a_missing_topic_has_its_error(
    broker: AdminBroker, name: str | None, topic_id: UUID | None, code: ErrorCode
) -> None:
    response = await ask(broker, handle_metadata, request((name, topic_id)))
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.topic_id, topic.partitions) == (code, name, topic_id, ())


async def test_a_topic_without_name_and_id_is_an_error_of_its_own(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await topics(broker, request((None, None), ("t", None))) == [
        ("", ErrorCode.invalid_request),
        ("t", ErrorCode.none),
    ]


async def test_null_asks_for_all_topics_and_an_empty_list_for_none(broker: AdminBroker) -> None:
    await broker.create(NewTopic("a", 1), NewTopic("b", 1))
    assert len(await topics(broker, request(everything=True))) == 2
    assert await topics(broker, request()) == []
    assert len(await topics(broker, request(), version=0)) == 2
    assert await topics(broker, request(), version=1) == []


async def test_a_duplicate_topic_has_one_result(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert await topics(broker, request(("t", None), ("t", None))) == [("t", ErrorCode.none)]


async def test_a_missing_topic_is_created_if_client_and_broker_allow_it(broker: AdminBroker) -> None:
    assert await topics(broker, request(("new", None), ("b d", None), create=True)) == [
        ("new", ErrorCode.none),
        ("b d", ErrorCode.invalid_topic_exception),
    ]
    assert list(broker.metadata.image.topics_by_name) == ["new"]


async def test_an_internal_topic_is_created_with_its_own_settings(broker: AdminBroker) -> None:
    response = await ask(broker, handle_metadata, request(("__consumer_offsets", None), create=True))
    (topic,) = response.topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.none, True, 50)


async def test_a_topic_whose_name_collides_is_not_created(broker: AdminBroker) -> None:
    await broker.create(NewTopic("a.b", 1))
    assert await topics(broker, request(("a_b", None), create=True)) == [
        ("a_b", ErrorCode.unknown_topic_or_partition)
    ]


async def test_no_topic_is_created_if_the_broker_does_not_allow_it(tmp_path: Path) -> None:
    broker = await admin_broker(tmp_path, auto__create__topics__enable="false")
    assert await topics(broker, request(("new", None), create=True)) == [
        ("new", ErrorCode.unknown_topic_or_partition)
    ]


async def test_a_topic_that_could_not_be_written_is_unknown(broker: AdminBroker) -> None:
    broker.store.broken = True
    assert await topics(broker, request(("new", None), create=True)) == [
        ("new", ErrorCode.unknown_topic_or_partition)
    ]


@pytest.mark.parametrize("version", range(14))
async def test_every_version_can_be_answered(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 1))
    # Before version 4 a client cannot forbid the creation of topics.
    made = version < 4
    assert await topics(broker, request(("t", None), ("x", None)), version) == [
        ("t", ErrorCode.none),
        ("x", ErrorCode.none if made else ErrorCode.unknown_topic_or_partition),
    ]


@pytest.mark.parametrize(("asked", "operations"), [(True, 8096), (False, -(2**31))])
@pytest.mark.parametrize("version", [8, 9, 10])
async def test_older_clients_get_the_operations_authorized_on_the_cluster(
    broker: AdminBroker, version: int, asked: bool, operations: int
) -> None:
    wanted = MetadataRequestWithCluster(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=asked,
        include_topic_authorized_operations=False,
    )
    response = await ask(broker, handle_metadata, wanted, version=version)
    assert response.cluster_authorized_operations == operations


async def test_a_topic_without_a_name_has_an_empty_one_for_older_clients(broker: AdminBroker) -> None:
    unknown = MetadataRequestTopic(topic_id=UUID(int=5), name=None)
    wanted = MetadataRequestWithCluster(
        topics=(unknown,),  # type: ignore[arg-type]  # all but its class
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    response = await ask(broker, handle_metadata, wanted, version=10)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("", ErrorCode.unknown_topic_id)]
