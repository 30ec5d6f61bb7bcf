"""FindCoordinator: groups and transactional ids here, share coordinators not for clients."""

import pytest

from barnabas.broker.handlers.find_coordinator import handle_find_coordinator
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequestBatch,
    FindCoordinatorRequestSingle,
)
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
async def test_what_is_not_coordinated(broker: AdminBroker, key_type: int, code: ErrorCode) -> None:
    single = FindCoordinatorRequestSingle(key="x", key_type=i8(key_type))
    response = await ask(broker, handle_find_coordinator, single, version=3)
    assert (response.error_code, response.node_id, response.host, response.port) == (code, -1, "", -1)
    batch = FindCoordinatorRequestBatch(key_type=i8(key_type), coordinator_keys=("x",))
    (one,) = (await ask(broker, handle_find_coordinator, batch)).coordinators
    assert (one.key, one.error_code, one.node_id, one.host, one.port) == ("x", code, -1, "", -1)
