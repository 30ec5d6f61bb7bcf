"""Settings of single topics and share groups, read from one broker and set at another.

A broker's default is no setting of a topic: the target uses its own defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerError
from barnabas.pipeline.export.requests import check, with_retries
from barnabas.protocol.client.admin_apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from barnabas.protocol.primitive import i8

NAMES_MAX: Final = 200
"""The number of topics or groups in one request."""

_SET: Final = i8(0)
_DELETE: Final = i8(1)


class Kind(IntEnum):
    """Kinds of resources with settings, by Kafka's numbers."""

    TOPIC = 2
    GROUP = 32


_OWN_SOURCE: Final = {Kind.TOPIC: 1, Kind.GROUP: 8}
"""The sources of settings that were made for the topic or group itself."""


async def read_settings(cluster: Cluster, kind: Kind, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By name, the settings of each; {} for one without settings. Raises `BrokerError`."""
    found: dict[str, dict[str, str]] = {}
    for start in range(0, len(names), NAMES_MAX):
        some = names[start : start + NAMES_MAX]
        found |= await with_retries(partial(_read, cluster, kind, some))
    return found


async def _read(cluster: Cluster, kind: Kind, names: Sequence[str]) -> dict[str, dict[str, str]]:
    resources = tuple(
        DescribeConfigsResource(resource_type=i8(kind), resource_name=name, configuration_keys=None)
        for name in names
    )
    response = await cluster.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    for result in response.results:
        check(result.error_code, result.error_message)
    return {
        result.resource_name: {
            config.name: config.value
            for config in result.configs
            if config.config_source == _OWN_SOURCE[kind]
            and config.value is not None
            and not config.is_sensitive
        }
        for result in response.results
    }


async def apply_settings(
    cluster: Cluster, kind: Kind, name: str, settings: Mapping[str, str | None]
) -> dict[str, str]:
    """Sets them, or removes those that are None; returns a sentence about each refused one, by setting.

    The others are set even if one is refused.
    """
    if not settings:
        return {}
    try:
        await with_retries(lambda: _apply(cluster, kind, name, settings))
    except BrokerError as error:
        if len(settings) == 1:
            ((setting, value),) = settings.items()
            reason = error.message or error.code.name
            return {setting: f"{name}: the setting {setting}={value} is refused: {reason}"}
        first, second = (dict(half) for half in _halves(list(settings.items())))
        refused = await apply_settings(cluster, kind, name, first)
        return refused | await apply_settings(cluster, kind, name, second)
    return {}


def _halves(
    items: list[tuple[str, str | None]],
) -> tuple[list[tuple[str, str | None]], list[tuple[str, str | None]]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


async def _apply(cluster: Cluster, kind: Kind, name: str, settings: Mapping[str, str | None]) -> None:
    configs = tuple(
        AlterableConfig(name=setting, config_operation=_DELETE if value is None else _SET, value=value)
        for setting, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    response = await cluster.ask(INCREMENTAL_ALTER_CONFIGS, request)
    for result in response.responses:
        check(result.error_code, result.error_message)
