"""DescribeConfigs: topics, brokers and groups, chosen settings, and errors (recorded from Kafka 4.3.1)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

from barnabas.broker.config import tables
from barnabas.broker.config.setting import render
from barnabas.broker.handlers import describe_configs
from barnabas.broker.handlers.describe_configs import handle_describe_configs
from barnabas.coordinator.metadata.config_decisions import ResourceChange, SettingChange
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.encode.describe_configs import setting_encoder
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8
from tests.broker.handlers.admin_broker import AdminBroker, admin_broker, ask

KAFKAS_TOPIC_SETTINGS = {
    "cleanup.policy": 7,
    "compression.type": 2,
    "flush.messages": 5,
    "max.message.bytes": 3,
    "min.cleanable.dirty.ratio": 6,
    "preallocate": 1,
}
"""Data types by name, as in Kafka's responses."""


async def describe(
    broker: AdminBroker,
    resource_type: int,
    name: str,
    *keys: str,
    synonyms: bool = True,
    documentation: bool = False,
    version: int = 4,
) -> Any:
    resource = DescribeConfigsResource(
        resource_type=i8(resource_type), resource_name=name, configuration_keys=keys or None
    )
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = (await ask(broker, handle_describe_configs, request, version=version)).results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


async def test_a_topic_has_all_of_kafkas_settings_with_their_types(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1))
    result = await describe(broker, ResourceType.TOPIC, "t")
    assert (result.error_code, result.error_message) == (ErrorCode.none, "")
    assert len(result.configs) == 37
    types = {one.name: one.config_type for one in result.configs}
    assert KAFKAS_TOPIC_SETTINGS.items() <= types.items()


async def test_a_setting_of_several_resources_is_encoded_once(
    broker: AdminBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def counting(version: int) -> Callable[[DescribeConfigsResourceResult], bytes]:
        encode = setting_encoder(version)

        def encode_and_count(config: DescribeConfigsResourceResult) -> bytes:
            names.append(config.name)
            return encode(config)

        return encode_and_count

    monkeypatch.setattr(describe_configs, "setting_encoder", counting)
    topics = [NewTopic(f"t{number}", 1) for number in range(50)]
    await broker.create(*topics, NewTopic("own", 1, configs={"retention.ms": "7"}))
    asked = [*(topic.name for topic in topics), "own", "own", "own"]
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(ResourceType.TOPIC), resource_name=name, configuration_keys=None
            )
            for name in asked
        ),
        include_synonyms=True,
        include_documentation=False,
    )

    results = (await ask(broker, handle_describe_configs, request)).results

    assert [result.resource_name for result in results] == asked
    assert {len(result.configs) for result in results} == {37}
    assert results[-1].configs == results[-2].configs != results[0].configs
    assert sorted(names) == sorted([*(one.name for one in results[0].configs), "retention.ms"])


async def test_chosen_settings_come_with_their_synonyms(broker: AdminBroker) -> None:
    await broker.create(NewTopic("t", 1, configs={"cleanup.policy": "compact", "retention.ms": "8000"}))
    result = await describe(
        broker, ResourceType.TOPIC, "t", "retention.ms", "nope", "cleanup.policy", "segment.ms"
    )
    assert [
        (
            one.name,
            one.value,
            one.read_only,
            one.config_source,
            [(synonym.name, synonym.value, synonym.source) for synonym in one.synonyms],
        )
        for one in result.configs
    ] == [
        (
            "cleanup.policy",
            "compact",
            False,
            1,
            [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)],
        ),
        ("retention.ms", "8000", False, 1, [("retention.ms", "8000", 1)]),
        ("segment.ms", "604800000", False, 5, []),
    ]


async def test_synonyms_and_documentation_are_optional(broker: AdminBroker) -> None:
    (plain,) = (
        await describe(broker, ResourceType.GROUP, "g", "share.isolation.level", synonyms=False)
    ).configs
    assert (plain.synonyms, plain.documentation) == ((), None)
    (full,) = (
        await describe(broker, ResourceType.GROUP, "g", "share.isolation.level", documentation=True)
    ).configs
    assert len(full.synonyms) == 1
    assert full.documentation.startswith("Whether records of aborted")


KAFKAS_GROUP_SETTINGS = {
    "consumer.assignment.interval.ms": ("1000", 5, 3),
    "consumer.heartbeat.interval.ms": ("5000", 5, 3),
    "consumer.session.timeout.ms": ("45000", 5, 3),
    "errors.deadletterqueue.copy.record.enable": ("false", 5, 1),
    "errors.deadletterqueue.topic.name": ("", 5, 2),
    "share.assignment.interval.ms": ("1000", 5, 3),
    "share.auto.offset.reset": ("latest", 5, 2),
    "share.delivery.count.limit": ("5", 5, 3),
    "share.heartbeat.interval.ms": ("5000", 5, 3),
    "share.isolation.level": ("read_uncommitted", 5, 2),
    "share.partition.max.record.locks": ("2000", 5, 3),
    "share.record.lock.duration.ms": ("30000", 5, 3),
    "share.renew.acknowledge.enable": ("true", 5, 1),
    "share.session.timeout.ms": ("45000", 5, 3),
}
"""The value, its source and the data type of each, as in Kafka's response."""


async def test_a_group_that_does_not_exist_has_the_defaults(broker: AdminBroker) -> None:
    result = await describe(broker, ResourceType.GROUP, "g")
    told = {one.name: (one.value, one.config_source, one.config_type) for one in result.configs}
    ours = {
        name: (render(setting.default), 5, int(setting.type))
        for name, setting in tables.GROUP.items()
        if setting.ours
    }
    of_broker = {"share.assignor.name": ("simple", 5, 2)}
    assert told == KAFKAS_GROUP_SETTINGS | ours | of_broker


async def test_a_broker_marks_its_dynamic_settings(broker: AdminBroker) -> None:
    result = await describe(broker, ResourceType.BROKER, "1", "num.partitions", "message.max.bytes")
    assert {one.name: (one.value, one.read_only) for one in result.configs} == {
        "num.partitions": ("1", True),
        "message.max.bytes": ("1048588", False),
    }


async def test_the_defaults_of_all_brokers_are_those_that_were_set(broker: AdminBroker) -> None:
    assert (await describe(broker, ResourceType.BROKER, "")).configs == ()
    change = SettingChange("message.max.bytes", 0, "5")
    await broker.metadata.alter_configs([ResourceChange(ConfigResource(ResourceType.BROKER, ""), [change])])
    (one,) = (await describe(broker, ResourceType.BROKER, "")).configs
    assert (one.name, one.value, one.config_source) == ("message.max.bytes", "5", 3)


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "message"),
    [
        (ResourceType.TOPIC, "x", ErrorCode.unknown_topic_or_partition, ""),
        (
            ResourceType.TOPIC,
            "",
            ErrorCode.invalid_topic_exception,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (ResourceType.GROUP, "", ErrorCode.invalid_request, "Group name must not be empty"),
        (
            ResourceType.BROKER,
            "2",
            ErrorCode.invalid_request,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (
            ResourceType.BROKER,
            "x",
            ErrorCode.invalid_request,
            "Broker id must be an integer, but it is: x",
        ),
        (ResourceType.BROKER_LOGGER, "1", ErrorCode.invalid_request, "Unsupported resource type: 8"),
        (99, "x", ErrorCode.invalid_request, "Unsupported resource type: 99"),
    ],
)
async def test_a_wrong_resource_is_refused_with_the_reason(
    broker: AdminBroker, resource_type: int, name: str, code: ErrorCode, message: str
) -> None:
    result = await describe(broker, resource_type, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, ())


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_every_version_can_be_answered(broker: AdminBroker, version: int) -> None:
    assert (await describe(broker, ResourceType.BROKER, "1", version=version)).configs


async def test_the_metadata_logs_settings_are_read_only(broker: AdminBroker) -> None:
    result = await describe(broker, ResourceType.TOPIC, "__cluster_metadata")
    assert result.error_code is ErrorCode.none
    assert {one.name: (one.value, one.read_only) for one in result.configs} == {
        "cleanup.policy": ("snapshot", True),
        "retention.bytes": ("-1", True),
        "retention.ms": ("-1", True),
        "segment.bytes": ("1073741824", True),
        "segment.ms": ("604800000", True),
    }


async def test_secrets_are_not_told(tmp_path: Path) -> None:
    secret = "s3cret"
    broker = await admin_broker(
        tmp_path,
        listeners="SSL://127.0.0.1:0",
        ssl__keystore__password=secret,
        listener__name__ssl__ssl__keystore__password=secret,
    )
    result = await describe(broker, ResourceType.BROKER, "1")
    assert secret not in repr(result)
    told = {config.name: config for config in result.configs if config.is_sensitive}
    assert {"ssl.key.password", "listener.name.ssl.ssl.keystore.password"} <= told.keys()
    assert {config.value for config in told.values()} == {None}
    own = told["listener.name.ssl.ssl.keystore.password"]
    assert [synonym.value for synonym in own.synonyms] == [None]
