"""What AlterConfigs and IncrementalAlterConfigs share: what they refuse of a request's own shape before it is
decided upon, and that every resource is answered for.

A resource given twice, a setting given twice, a value that is missing, a type of resource that doesn't exist
(INVALID_REQUEST). Loggers and client metrics are not served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from barnabas.broker.network.handler import Reply, Response
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode
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
Outcomes = Mapping[ConfigResource, ApiError | None]
"""Why each resource of a request is not altered; None for those that are."""


def answer_altered(
    resources: Sequence[_Resource],
    *,
    without_value: Callable[[_Resource], Sequence[str]],
    fault: Callable[[_Resource], ApiError | None],
    decide: Callable[[Sequence[_Resource]], Completion[list[ApiError | None]]],
    respond: Callable[[Outcomes], Response],
) -> Reply:
    """Have the controller decide on the resources that are well formed, in `decide`, and answer for all.

    `without_value` are a resource's settings that lack a value they need; `fault` is what else is wrong.
    """
    seen = Counter(map(resource_key, resources))
    outcomes = {
        resource_key(one): _refuse_shape(one, seen, without_value(one)) or fault(one) for one in resources
    }
    sound = [one for one in resources if outcomes[resource_key(one)] is None]

    def respond_with(decided: Sequence[ApiError | None]) -> Response:
        return respond({**outcomes, **dict(zip(map(resource_key, sound), decided, strict=True))})

    return respond_when_done(decide(sound), respond_with, lambda error: respond_with([error] * len(sound)))


def resource_key(resource: AlteredResource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def _refuse_shape(
    resource: AlteredResource, seen: Counter[ConfigResource], without_value: Sequence[str]
) -> ApiError | None:
    """Why the resource cannot be altered; `without_value` are the settings that lack a value they need."""
    message = _fault(resource, seen, without_value)
    return None if message is None else ApiError(ErrorCode.invalid_request, message)


def _fault(
    resource: AlteredResource, seen: Counter[ConfigResource], without_value: Sequence[str]
) -> str | None:
    if seen[resource_key(resource)] > 1:
        return "Each resource must appear at most once."
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        return "Error due to duplicate config keys"
    if without_value:
        return f"Null value not supported for : {', '.join(without_value)}"
    if int(resource.resource_type) not in _SERVED_TYPES:
        return f"Unknown resource type {resource.resource_type}"
    return None
