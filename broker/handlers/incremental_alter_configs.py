"""IncrementalAlterConfigs (key 44, versions 0 and 1; KIP-339): changes single settings.

The changes to a resource are made all together or not at all. The controller and the rules of the
configuration decide on the values. Malformed resources (see `altered_resources`) and unknown operations are
INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.incremental_alter_configs.v1.request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from barnabas.broker.handlers.common.altered_resources import answer_altered, invalid, resource_key
from barnabas.coordinator.metadata.config_decisions import Operation, ResourceChange, SettingChange
from barnabas.protocol.errors import ApiError

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller

_OPERATIONS = frozenset[int](Operation)


class Parts(NamedTuple):
    metadata: Controller


def handle_incremental_alter_configs(
    parts: Parts, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Reply:
    return answer_altered(
        request.resources,
        without_value=_without_value,
        fault=_unknown_operation,
        decide=lambda sound: parts.metadata.alter_configs(
            [_change(resource) for resource in sound], validate_only=request.validate_only
        ),
        response=IncrementalAlterConfigsResponse,
        result=AlterConfigsResourceResponse,
    )


def _without_value(resource: AlterConfigsResource) -> list[str]:
    return [
        config.name
        for config in resource.configs
        if config.value is None and int(config.config_operation) != Operation.DELETE
    ]


def _unknown_operation(resource: AlterConfigsResource) -> ApiError | None:
    for config in resource.configs:
        if int(config.config_operation) not in _OPERATIONS:
            return invalid(f"Unknown operations type {config.config_operation}")
    return None


def _change(resource: AlterConfigsResource) -> ResourceChange:
    return ResourceChange(
        resource_key(resource),
        [SettingChange(config.name, config.config_operation, config.value) for config in resource.configs],
    )
