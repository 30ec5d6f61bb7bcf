"""The common parts of AlterConfigs and IncrementalAlterConfigs: malformed resources, and the response.

INVALID_REQUEST is the error of a resource that the request names twice, with a setting that it names twice,
without a value that is needed, or of an unknown type. Loggers and client metrics are not served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.broker.handlers.common.error_fields import error_fields
from barnabas.broker.network.handler import Reply, Response
from barnabas.broker.network.replies import respond_to_each
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import milliseconds
from barnabas.runtime.completion import Completion

_SERVED_TYPES = frozenset[int]((ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP))


class AlteredResource(Protocol):
    """A resource in one of the requests."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> tuple[Any, ...]: ...


_Resource = TypeVar("_Resource", bound=AlteredResource)


def answer_altered(
    resources: Sequence[_Resource],
    *,
    without_value: Callable[[_Resource], Sequence[str]],
    fault: Callable[[_Resource], ApiError | None],
    decide: Callable[[Sequence[_Resource]], Completion[list[ApiError | None]]],
    response: Callable[..., Response],
    result: Callable[..., object],
) -> Reply:
    """Lets the controller `decide` on the well-formed resources, and answers for all of them.

    `without_value` are the settings of a resource that lack a value; `fault` is any other fault of it.
    `response` and `result` are the message classes of the API.
    """
    seen = Counter(map(resource_key, resources))
    faults = {
        resource_key(resource): _fault(resource, seen, without_value(resource)) or fault(resource)
        for resource in resources
    }
    sound = [resource for resource in resources if faults[resource_key(resource)] is None]

    def respond(decided: Sequence[ApiError | None]) -> Response:
        errors = faults | dict(zip(map(resource_key, sound), decided, strict=True))
        results = [
            result(
                **error_fields(errors[resource_key(resource)]),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in resources
        ]
        return response(throttle_time=milliseconds(0), responses=tuple(results))

    return respond_to_each(decide(sound), len(sound), respond)


def resource_key(resource: AlteredResource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def invalid(message: str) -> ApiError:
    """The error of a malformed resource."""
    return ApiError(ErrorCode.invalid_request, message)


def _fault(
    resource: AlteredResource, seen: Counter[ConfigResource], without_value: Sequence[str]
) -> ApiError | None:
    if seen[resource_key(resource)] > 1:
        return invalid("Each resource must appear at most once.")
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        return invalid("Error due to duplicate config keys")
    if without_value:
        return invalid(f"Null value not supported for : {', '.join(without_value)}")
    if int(resource.resource_type) not in _SERVED_TYPES:
        return invalid(f"Unknown resource type {resource.resource_type}")
    return None
