"""ListConfigResources: all topics and brokers, and the groups with settings."""

import pytest
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest

from barnabas.broker.handlers.list_config_resources import handle_list_config_resources
from barnabas.coordinator.metadata.config_decisions import ResourceChange, SettingChange
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, ask


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ((), [("t", 2), ("1", 4), ("g", 32)]),
        ((32,), [("g", 32)]),
        ((2, 4), [("t", 2), ("1", 4)]),
        ((8,), []),
        ((16,), []),
    ],
)
async def test_the_resources_of_the_requested_types_are_listed(
    broker: AdminBroker, types: tuple[int, ...], listed: list[tuple[str, int]]
) -> None:
    await broker.create(NewTopic("t", 1))
    change = SettingChange("share.delivery.count.limit", 0, "7")
    await broker.metadata.alter_configs([ResourceChange(ConfigResource(ResourceType.GROUP, "g"), [change])])
    request = ListConfigResourcesRequest(resource_types=tuple(map(i8, types)))
    response = await ask(broker, handle_list_config_resources, request)
    assert response.error_code is ErrorCode.none
    assert [(one.resource_name, one.resource_type) for one in response.config_resources] == listed


@pytest.mark.parametrize("unknown", [1, 77])
async def test_an_unknown_type_is_refused(broker: AdminBroker, unknown: int) -> None:
    request = ListConfigResourcesRequest(resource_types=(i8(2), i8(unknown)))
    response = await ask(broker, handle_list_config_resources, request)
    assert (response.error_code, response.config_resources) == (ErrorCode.unsupported_version, ())


async def test_the_first_version_lists_client_metrics_alone(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    response = await ask(broker, handle_list_config_resources, ListConfigResourcesRequest(), version=0)
    assert (response.error_code, response.config_resources) == (ErrorCode.none, ())
