"""FindCoordinator: groups here, transactions nowhere, share coordinators not for clients."""

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
async def test_a_group_is_coordinated_here(broker: AdminBroker, version: int) -> None:
    request = FindCoordinatorRequestSingle(key="g", key_type=i8(0))
    response = await ask(broker, handle_find_coordinator, request, version=version)
    assert (response.error_code, response.node_id, response.host, response.port) == HERE
    assert response.error_message == "NONE"


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_several_groups_are_coordinated_here(broker: AdminBroker, version: int) -> None:
    request = FindCoordinatorRequestBatch(key_type=i8(0), coordinator_keys=("g", "h"))
    response = await ask(broker, handle_find_coordinator, request, version=version)
    assert [
        (one.key, one.error_code, one.node_id, one.host, one.port, one.error_message)
        for one in response.coordinators
    ] == [("g", *HERE, ""), ("h", *HERE, "")]


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (1, ErrorCode.transactional_id_authorization_failed),
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


@pytest.mark.parametrize("version", [3, 6])
async def test_a_transactional_producer_is_told_why_it_fails(broker: AdminBroker, version: int) -> None:
    if version == 3:
        single = FindCoordinatorRequestSingle(key="x", key_type=i8(1))
        answer = await ask(broker, handle_find_coordinator, single, version=version)
    else:
        batch = FindCoordinatorRequestBatch(key_type=i8(1), coordinator_keys=("x",))
        (answer,) = (await ask(broker, handle_find_coordinator, batch, version=version)).coordinators
    assert answer.error_message == "Transactions are not supported."
