"""FindCoordinator: this node coordinates groups and transactional ids; no share coordinator for clients."""

import pytest
from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as FindCoordinatorRequestSingle
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest as FindCoordinatorRequestBatch

from barnabas.broker.handlers.find_coordinator import handle_find_coordinator
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, ask

HERE = (ErrorCode.none, 1, "broker.example", 19092)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("key_type", [0, 1])
async def test_groups_and_transactional_ids_are_coordinated_here(
    broker: AdminBroker, version: int, key_type: int
) -> None:
    request = FindCoordinatorRequestSingle(key="g", key_type=i8(key_type))
    response = await ask(broker, handle_find_coordinator, request, version=version)
    assert (response.error_code, response.node_id, response.host, response.port) == HERE
    assert response.error_message == "NONE"


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("key_type", [0, 1])
async def test_several_are_coordinated_here(broker: AdminBroker, version: int, key_type: int) -> None:
    request = FindCoordinatorRequestBatch(key_type=i8(key_type), coordinator_keys=("g", "h"))
    response = await ask(broker, handle_find_coordinator, request, version=version)
    assert [
        (one.key, one.error_code, one.node_id, one.host, one.port, one.error_message)
        for one in response.coordinators
    ] == [("g", *HERE, ""), ("h", *HERE, "")]


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (2, ErrorCode.invalid_request),
        (7, ErrorCode.invalid_request),
    ],
)
async def test_coordinators_of_other_kinds_are_refused(
    broker: AdminBroker, key_type: int, code: ErrorCode
) -> None:
    single = FindCoordinatorRequestSingle(key="x", key_type=i8(key_type))
    response = await ask(broker, handle_find_coordinator, single, version=3)
    assert (response.error_code, response.node_id, response.host, response.port) == (code, -1, "", -1)
    batch = FindCoordinatorRequestBatch(key_type=i8(key_type), coordinator_keys=("x",))
    (one,) = (await ask(broker, handle_find_coordinator, batch)).coordinators
    assert (one.key, one.error_code, one.node_id, one.host, one.port) == ("x", code, -1, "", -1)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
async def test_the_first_request_creates_the_topic(
    broker: AdminBroker, version: int, key_type: int, topic: str
) -> None:
    assert not broker.internal_topics.exists(topic)
    for _ in range(2):
        assert await errors(broker, version, key_type, "g") == [ErrorCode.none]
        assert len(broker.metadata.image.topics_by_name[topic].partitions) == 50


async def test_a_request_without_keys_creates_no_topic(broker: AdminBroker) -> None:
    await errors(broker, 4, 0)
    await errors(broker, 4, 2, "x")
    assert broker.metadata.image.topics_by_name == {}


@pytest.mark.parametrize("version", [3, 4])
async def test_without_the_topic_no_coordinator_is_available(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("__consumer.offsets", 1))
    assert await errors(broker, version, 0, "g") == [ErrorCode.coordinator_not_available]


async def errors(broker: AdminBroker, version: int, key_type: int, *keys: str) -> list[ErrorCode]:
    """The result for each key."""
    if version < 4:
        single = FindCoordinatorRequestSingle(key=keys[0], key_type=i8(key_type))
        return [(await ask(broker, handle_find_coordinator, single, version=version)).error_code]
    batch = FindCoordinatorRequestBatch(key_type=i8(key_type), coordinator_keys=keys)
    response = await ask(broker, handle_find_coordinator, batch, version=version)
    return [one.error_code for one in response.coordinators]
