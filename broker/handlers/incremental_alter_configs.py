"""IncrementalAlterConfigs (key 44): change settings of topics, brokers and groups one by one (KIP-339).

All changes of a resource are made or none. What is allowed is decided by the controller and the rules of the
configuration; here the request's own shape is checked: a resource given twice, a setting given twice, a value
that is missing, an operation or a type that doesn't exist (INVALID_REQUEST). Loggers and client metrics are
not served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.replies import respond_when_done
from barnabas.coordinator.metadata.config_decisions import Operation, ResourceChange, SettingChange
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.dispatch import Reply, RequestContext

_SERVED_TYPES = frozenset[int]((ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP))
_OPERATIONS = frozenset[int](Operation)


def handle_incremental_alter_configs(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> Reply:
    seen = Counter(map(_key, request.resources))
    errors = {_key(resource): _shape_error(resource, seen) for resource in request.resources}
    changes = [_change(resource) for resource in request.resources if errors[_key(resource)] is None]

    def respond(decided: Sequence[ApiError | None]) -> IncrementalAlterConfigsResponse:
        errors.update(zip((change.resource for change in changes), decided, strict=True))
        return IncrementalAlterConfigsResponse(
            throttle_time=milliseconds(0),
            responses=tuple(_response(resource, errors[_key(resource)]) for resource in request.resources),
        )

    reply = broker.metadata.alter_configs(changes, validate_only=request.validate_only)
    return respond_when_done(reply, respond, lambda error: respond([error] * len(changes)))


def _key(resource: AlterConfigsResource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def _change(resource: AlterConfigsResource) -> ResourceChange:
    return ResourceChange(
        _key(resource),
        [SettingChange(config.name, config.config_operation, config.value) for config in resource.configs],
    )


def _shape_error(resource: AlterConfigsResource, seen: Counter[ConfigResource]) -> ApiError | None:
    message = _shape_fault(resource, seen)
    return None if message is None else ApiError(ErrorCode.invalid_request, message)


def _shape_fault(resource: AlterConfigsResource, seen: Counter[ConfigResource]) -> str | None:
    if seen[_key(resource)] > 1:
        return "Each resource must appear at most once."
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        return "Error due to duplicate config keys"
    missing = [
        config.name
        for config in resource.configs
        if config.value is None and int(config.config_operation) != Operation.DELETE
    ]
    if missing:
        return f"Null value not supported for : {', '.join(missing)}"
    if int(resource.resource_type) not in _SERVED_TYPES:
        return f"Unknown resource type {resource.resource_type}"
    operations = [int(config.config_operation) for config in resource.configs]
    unknown = [operation for operation in operations if operation not in _OPERATIONS]
    return f"Unknown operations type {unknown[0]}" if unknown else None


def _response(resource: AlterConfigsResource, error: ApiError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
