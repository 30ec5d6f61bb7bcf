"""The settings of topics, groups and brokers, with their sources; set them, or return to the default."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from barnabas.client.admin.connection import AdminConnection, check_code
from barnabas.client.errors import MisuseError, UnknownTopicError
from barnabas.protocol.client.admin_apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8

ALL_BROKERS: Final = ""
"""As the name of a resource of type BROKER: the defaults of all brokers."""

_PROPAGATION_SECONDS: Final = 2.0
"""How long a broker may take to learn of a change that its controller has confirmed. Apache Kafka takes some
milliseconds, Barnabas none."""
_LOOK_AGAIN_SECONDS: Final = 0.05

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class ResourceType(IntEnum):
    """The kinds of resources that have settings, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Resource(NamedTuple):
    """A topic or a group by its name, or a broker by its id."""

    type: ResourceType
    name: str


class Source(IntEnum):
    """The place where a value is set, with Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    """Set for one broker while it runs."""
    ALL_BROKERS = 3
    """Set for all brokers while they run."""
    CONFIGURATION = 4
    """Set when the broker started."""
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Setting(NamedTuple):
    """A setting with its value in force."""

    name: str
    value: str | None
    """None if it has none, and for a secret."""
    source: Source
    is_read_only: bool
    is_sensitive: bool


class _Operation(IntEnum):
    SET = 0
    DELETE = 1


async def describe_settings(connection: AdminConnection, resource: Resource) -> list[Setting]:
    """All settings of the resource, sorted by name.

    Raises `UnknownTopicError`, `MisuseError` for an unknown broker, `BrokerError` and
    `BrokerUnavailableError`.
    """
    asked = DescribeConfigsResource(
        resource_type=i8(resource.type), resource_name=resource.name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=(asked,), include_synonyms=False)

    async def step() -> list[Setting]:
        (result,) = (await _ask(connection, resource, DESCRIBE_CONFIGS, request)).results
        _check(resource, result.error_code, result.error_message)
        return sorted(map(_setting, result.configs))

    return await connection.with_retries(step)


async def alter_settings(
    connection: AdminConnection, resource: Resource, changes: Mapping[str, str | None]
) -> None:
    """Set each name to its value; None returns to the default. All of them change, or none.

    Raises the errors of `describe_settings`, such as `BrokerError` with INVALID_CONFIG.
    """
    altered = AlterConfigsResource(
        resource_type=i8(resource.type),
        resource_name=resource.name,
        configs=tuple(
            AlterableConfig(
                name=name,
                config_operation=i8(_Operation.DELETE if value is None else _Operation.SET),
                value=value,
            )
            for name, value in changes.items()
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(altered,), validate_only=False)

    async def step() -> None:
        (result,) = (await _ask(connection, resource, INCREMENTAL_ALTER_CONFIGS, request)).responses
        _check(resource, result.error_code, result.error_message)

    await connection.with_retries(step)


async def describe_after(
    connection: AdminConnection,
    resource: Resource,
    changes: Mapping[str, str | None],
    before: Iterable[Setting],
) -> list[Setting]:
    """Wait until the broker describes these changes, which `alter_settings` made, and return all settings.

    `before` are the settings before the changes. The wait ends after two seconds in any case: a value that
    the broker writes in another way, and that was the same before, looks like one that is not known yet.
    Raises the errors of `describe_settings`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PROPAGATION_SECONDS
    old = _own_settings(resource, before)
    while True:
        settings = await describe_settings(connection, resource)
        new = _own_settings(resource, settings)
        is_known = all(_is_known(value, old.get(name), new.get(name)) for name, value in changes.items())
        if is_known or loop.time() >= deadline:
            return settings
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _own_settings(resource: Resource, settings: Iterable[Setting]) -> dict[str, Setting]:
    """By name, those that are set for the resource itself."""
    source = _own_source(resource)
    return {setting.name: setting for setting in settings if setting.source is source}


def _own_source(resource: Resource) -> Source:
    """The source of the values that are set for the resource itself."""
    match resource.type:
        case ResourceType.TOPIC:
            return Source.TOPIC
        case ResourceType.GROUP:
            return Source.GROUP
        case ResourceType.BROKER:
            return Source.ALL_BROKERS if resource.name == ALL_BROKERS else Source.BROKER


def _is_known(value: str | None, old: Setting | None, new: Setting | None) -> bool:
    """Whether `new`, the described setting of the resource itself, shows the change to the value from `old`.

    A setting is None if the resource has no value of its own, and the value None for a deletion.
    """
    if new is None or value is None:
        return new is None and value is None
    return new.is_sensitive or new.value == value or new != old


async def _ask(
    connection: AdminConnection, resource: Resource, api: ClientApi[_Request, _Response], request: _Request
) -> _Response:
    """The response of a broker that knows the settings."""
    if (node_id := _node_id(resource)) is None:
        return await connection.cluster.ask(api, request)
    return await connection.ask_broker(node_id, api, request)


def _node_id(resource: Resource) -> int | None:
    """The only broker that knows the settings; None if any broker does. Raises `MisuseError`."""
    if resource.type is not ResourceType.BROKER or resource.name == ALL_BROKERS:
        return None
    if not (resource.name.isascii() and resource.name.isdecimal()):
        raise MisuseError(f"{resource.name!r} is not the id of a broker, which is a number.")
    return int(resource.name)


def _check(resource: Resource, code: ErrorCode, message: str | None) -> None:
    if resource.type is ResourceType.TOPIC and code is ErrorCode.unknown_topic_or_partition:
        raise UnknownTopicError([resource.name])
    check_code(code, message)


def _setting(described: DescribeConfigsResourceResult) -> Setting:
    try:
        source = Source(described.config_source)
    except ValueError:
        source = Source.UNKNOWN
    return Setting(described.name, described.value, source, described.read_only, described.is_sensitive)
