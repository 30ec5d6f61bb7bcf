"""AlterConfigs: settings replaced as a whole, and malformed requests (recorded from Kafka 4.3.1)."""

import pytest
from kio.schema.alter_configs.v2.request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

from barnabas.broker.handlers.alter_configs import handle_alter_configs
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, ask

TOPIC, BROKER, GROUP = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP
Config = tuple[str, str | None]


def resource(resource_type: int, name: str, *configs: Config) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=i8(resource_type),
        resource_name=name,
        configs=tuple(AlterableConfig(name=key, value=value) for key, value in configs),
    )


async def alter(
    broker: AdminBroker, *resources: AlterConfigsResource, validate_only: bool = False, version: int = 2
) -> list[tuple[ErrorCode, str | None]]:
    request = AlterConfigsRequest(resources=resources, validate_only=validate_only)
    response = await ask(broker, handle_alter_configs, request, version=version)
    named = [(one.resource_type, one.resource_name) for one in response.responses]
    assert named == [(one.resource_type, one.resource_name) for one in resources]
    return [(one.error_code, one.error_message) for one in response.responses]


@pytest.mark.parametrize("version", range(3))
async def test_settings_that_the_request_leaves_out_are_reset(broker: AdminBroker, version: int) -> None:
    await broker.create(NewTopic("t", 1, configs={"retention.ms": "5", "segment.ms": "6"}))
    change = resource(TOPIC, "t", ("retention.ms", "7"), ("cleanup.policy", "compact"))
    assert await alter(broker, change, version=version) == [(ErrorCode.none, None)]
    assert broker.metadata.image.configs(TOPIC, "t") == {"retention.ms": "7", "cleanup.policy": "compact"}


async def test_a_request_without_settings_resets_all(broker: AdminBroker) -> None:
    await alter(broker, resource(GROUP, "g", ("share.delivery.count.limit", "7")))
    assert await alter(broker, resource(GROUP, "g")) == [(ErrorCode.none, None)]
    assert broker.metadata.image.configs(GROUP, "g") == {}


async def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    change = resource(BROKER, "", ("message.max.bytes", "5"))
    assert await alter(broker, change, validate_only=True) == [(ErrorCode.none, None)]
    assert broker.metadata.image.configs(BROKER, "") == {}


async def test_one_bad_value_leaves_the_resource_unchanged(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1, configs={"retention.ms": "5"}))
    assert await alter(
        broker,
        resource(TOPIC, "t", ("preallocate", "bogus")),
        resource(GROUP, "g", ("share.delivery.count.limit", "7")),
    ) == [
        (
            ErrorCode.invalid_config,
            "Invalid value bogus for configuration preallocate: Expected value to be either true or false",
        ),
        (ErrorCode.none, None),
    ]
    assert broker.metadata.image.configs(TOPIC, "t") == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            resource(TOPIC, "t", ("a", "1"), ("a", "2")),
            ErrorCode.invalid_request,
            "Error due to duplicate config keys",
        ),
        (
            resource(TOPIC, "t", ("a", None), ("b", "1"), ("c", None)),
            ErrorCode.invalid_request,
            "Null value not supported for : a, c",
        ),
        (resource(9, "t", ("a", "1")), ErrorCode.invalid_request, "Unknown resource type 9"),
        (resource(8, "1", ("root", "INFO")), ErrorCode.invalid_request, "Unknown resource type 8"),
        (
            resource(TOPIC, "nope", ("compression.type", "gzip")),
            ErrorCode.unknown_topic_or_partition,
            "The topic 'nope' does not exist.",
        ),
        (
            resource(BROKER, "1", ("node.id", "5")),
            ErrorCode.invalid_request,
            "Cannot update these configs dynamically: [node.id]",
        ),
    ],
)
async def test_malformed_resources_are_refused(
    broker: AdminBroker, asked: AlterConfigsResource, code: ErrorCode, message: str
) -> None:
    assert await alter(broker, asked) == [(code, message)]


async def test_a_duplicate_resource_is_refused_both_times(broker: AdminBroker) -> None:
    once = resource(GROUP, "g", ("share.delivery.count.limit", "7"))
    message = "Each resource must appear at most once."
    assert await alter(broker, once, once) == [(ErrorCode.invalid_request, message)] * 2
