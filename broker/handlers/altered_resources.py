"""What AlterConfigs and IncrementalAlterConfigs refuse in a request before it is decided upon: its own shape.

A resource given twice, a setting given twice, a value that is missing, a type of resource that doesn't exist
(INVALID_REQUEST). Loggers and client metrics are not served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from barnabas.coordinator.metadata.image import ConfigResource, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode

_SERVED_TYPES = frozenset[int]((ResourceType.TOPIC, ResourceType.BROKER, ResourceType.GROUP))


class AlteredResource(Protocol):
    """A resource in one of the requests."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> tuple[Any, ...]: ...


def resource_key(resource: AlteredResource) -> ConfigResource:
    return ConfigResource(resource.resource_type, resource.resource_name)


def count_resources(resources: Iterable[AlteredResource]) -> Counter[ConfigResource]:
    """How often each resource is there."""
    return Counter(map(resource_key, resources))


def refuse_shape(
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
