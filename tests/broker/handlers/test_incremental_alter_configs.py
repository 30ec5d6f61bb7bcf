"""IncrementalAlterConfigs: changes that take effect, and malformed requests (from Kafka 4.3.1)."""

import pytest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from barnabas.broker.handlers.incremental_alter_configs import handle_incremental_alter_configs
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, ask

SET, DELETE, APPEND = 0, 1, 2
Change = tuple[str, int, str | None]


def resource(resource_type: int, name: str, *changes: Change) -> AlterConfigsResource:
    configs = tuple(
        AlterableConfig(name=key, config_operation=i8(operation), value=value)
        for key, operation, value in changes
    )
    return AlterConfigsResource(resource_type=i8(resource_type), resource_name=name, configs=configs)


async def alter(
    broker: AdminBroker, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    response = await ask(broker, handle_incremental_alter_configs, request)
    named = [(one.resource_type, one.resource_name) for one in response.responses]
    assert named == [(one.resource_type, one.resource_name) for one in resources]
    return [(one.error_code, one.error_message) for one in response.responses]


async def test_settings_of_topics_brokers_and_groups_change(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    assert (
        await alter(
            broker,
            resource(ResourceType.TOPIC, "t", ("cleanup.policy", APPEND, "compact")),
            resource(ResourceType.BROKER, "", ("message.max.bytes", SET, "5")),
            resource(ResourceType.GROUP, "g", ("share.auto.offset.reset", SET, "earliest")),
        )
        == [(ErrorCode.none, None)] * 3
    )
    image = broker.metadata.image
    assert image.configs(ResourceType.TOPIC, "t") == {"cleanup.policy": "delete,compact"}
    assert image.configs(ResourceType.BROKER, "") == {"message.max.bytes": "5"}
    assert image.configs(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "earliest"}


@pytest.mark.parametrize("version", [0, 1])
async def test_a_value_of_the_greatest_length_is_refused_in_every_version(
    broker: AdminBroker, version: int
) -> None:
    await broker.create(NewTopic("t", 1))
    change = resource(ResourceType.TOPIC, "t", ("retention.ms", SET, "1" * 32_767))
    request = IncrementalAlterConfigsRequest(resources=(change,), validate_only=False)

    (one,) = (await ask(broker, handle_incremental_alter_configs, request, version=version)).responses

    assert one.error_code is ErrorCode.invalid_config
    assert one.error_message.startswith("Invalid value 111")
    assert one.error_message.endswith("for configuration retention.ms: Not a number of type LONG")


async def test_validation_alone_changes_nothing(broker: AdminBroker) -> None:
    change = resource(ResourceType.GROUP, "g", ("share.delivery.count.limit", SET, "7"))
    assert await alter(broker, change, validate_only=True) == [(ErrorCode.none, None)]
    assert broker.metadata.image.configs(ResourceType.GROUP, "g") == {}


async def test_one_bad_resource_does_not_affect_the_others(broker: AdminBroker) -> None:
    assert await alter(
        broker,
        resource(ResourceType.GROUP, "g", ("nope", SET, "7")),
        resource(ResourceType.GROUP, "h", ("share.delivery.count.limit", SET, "7")),
    ) == [(ErrorCode.invalid_config, "Unknown group config name: nope"), (ErrorCode.none, None)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            resource(ResourceType.GROUP, "g", ("a", SET, "1"), ("a", SET, "2")),
            "Error due to duplicate config keys",
        ),
        (
            resource(ResourceType.GROUP, "g", ("a", SET, None), ("b", APPEND, None), ("c", DELETE, None)),
            "Null value not supported for : a, b",
        ),
        (resource(ResourceType.GROUP, "g", ("a", 9, "1")), "Unknown operations type 9"),
        (resource(0, "g", ("a", SET, "1")), "Unknown resource type 0"),
        (resource(ResourceType.BROKER_LOGGER, "1", ("a", SET, "1")), "Unknown resource type 8"),
        (resource(ResourceType.CLIENT_METRICS, "m", ("a", SET, "1")), "Unknown resource type 16"),
    ],
)
async def test_a_malformed_request_is_refused(
    broker: AdminBroker, asked: AlterConfigsResource, message: str
) -> None:
    assert await alter(broker, asked) == [(ErrorCode.invalid_request, message)]


async def test_a_duplicate_resource_is_refused_both_times(broker: AdminBroker) -> None:
    change = resource(ResourceType.GROUP, "g", ("share.delivery.count.limit", SET, "7"))
    refused = (ErrorCode.invalid_request, "Each resource must appear at most once.")
    assert await alter(broker, change, change) == [refused, refused]
    assert broker.metadata.image.configs(ResourceType.GROUP, "g") == {}


async def test_a_disk_that_fails_is_an_error_for_each_resource(broker: AdminBroker) -> None:
    broker.store.broken = True
    change = resource(ResourceType.GROUP, "g", ("share.delivery.count.limit", SET, "7"))
    ((code, _),) = await alter(broker, change)
    assert code is ErrorCode.kafka_storage_error


@pytest.mark.parametrize(
    "change",
    [("cleanup.policy", SET, "delete"), ("cleanup.policy", DELETE, None), ("retention.ms", SET, "1")],
)
async def test_the_metadata_logs_settings_cannot_be_changed(broker: AdminBroker, change: Change) -> None:
    wish = resource(ResourceType.TOPIC, "__cluster_metadata", change)
    message = "The settings of __cluster_metadata can be read, but not changed."
    assert await alter(broker, wish) == [(ErrorCode.invalid_request, message)]


async def test_no_other_topic_is_snapshotted(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    ((error_code, _),) = await alter(
        broker, resource(ResourceType.TOPIC, "t", ("cleanup.policy", SET, "snapshot"))
    )
    assert error_code is ErrorCode.invalid_config
