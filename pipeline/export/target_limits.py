"""A leader's settings of a share group that a restore depends on: limits, and whether there are dead letters.

A group has its own limits (KIP-1240); Apache Kafka before 4.3 has them for all groups, as broker settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource

from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.network.connection import Connection
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.requests import check
from barnabas.protocol.client.admin_apis import DESCRIBE_CONFIGS
from barnabas.protocol.primitive import i8

_BROKER: Final = i8(4)
_GROUP: Final = i8(32)

_DELIVERIES: Final = "share.delivery.count.limit"
_LOCKS: Final = "share.partition.max.record.locks"
_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"


class TargetLimits(NamedTuple):
    """The limits of one group."""

    deliveries_max: int
    """A record that is not accepted after this number of deliveries is archived."""
    locks_max: int
    """The greatest number of records in flight of a partition."""
    has_letters: bool = False
    """Whether a record that is rejected gets a dead letter (KIP-1191)."""


async def read_limits(
    connection: Connection, node_id: int, group_id: str, settings: Mapping[str, str]
) -> TargetLimits:
    """The limits of the connected broker, `node_id`.

    `settings` are those that were set for the group. Raises `BrokerUnavailableError` while the broker doesn't
    know them yet, `BrokerError`, and `PipelineError` for a broker without such limits.
    """
    found = await _read(connection, _GROUP, group_id, (_DELIVERIES, _LOCKS, _LETTER_TOPIC))
    for name in found.keys() & settings.keys():
        if found[name] != settings[name]:
            raise BrokerUnavailableError(f"Broker {node_id} does not know {name} of group {group_id} yet.")
    if missing := {_DELIVERIES, _LOCKS} - found.keys():
        of_broker = await _read(connection, _BROKER, str(node_id), tuple(f"group.{name}" for name in missing))
        found |= {name.removeprefix("group."): value for name, value in of_broker.items()}
    try:
        limits = int(found[_DELIVERIES]), int(found[_LOCKS])
    except KeyError as error:
        raise PipelineError(f"Broker {node_id} does not report {error.args[0]}.") from error
    return TargetLimits(*limits, has_letters=bool(found.get(_LETTER_TOPIC)))


async def _read(connection: Connection, kind: i8, name: str, settings: tuple[str, ...]) -> dict[str, str]:
    """The settings of these that exist."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=settings)
    response = await connection.ask(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=(resource,)))
    for result in response.results:
        check(result.error_code, result.error_message or f"settings of {name}")
    return {
        config.name: config.value
        for result in response.results
        for config in result.configs
        if config.value is not None
    }
