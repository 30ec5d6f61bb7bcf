"""Changes of the settings of topics, brokers and groups: whether they are allowed, and their records.

KIP-339 (IncrementalAlterConfigs), decided as by Apache Kafka's `ConfigurationControlManager`, with its errors
and messages: either all changes of one resource are made, or none. `ConfigRules`, which the edge passes in,
knows the settings and their values. Pure.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from barnabas.coordinator.metadata.image import ConfigResource, MetadataImage, ResourceType
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.metadata_records import ConfigRecord, MetadataRecord

_VALUE_LENGTH_MAX = 32767


class Operation(IntEnum):
    """The operation on one setting, by its id on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class SettingChange(NamedTuple):
    """One setting to change. `value` is the whole new value, or the items to append or subtract."""

    name: str
    operation: int
    value: str | None


class ResourceChange(NamedTuple):
    """The changes of one resource's settings."""

    resource: ConfigResource
    changes: Sequence[SettingChange]


class ResourceReplacement(NamedTuple):
    """All settings that a resource is to have of its own."""

    resource: ConfigResource
    configs: Mapping[str, str]


class ConfigRules(Protocol):
    """The settings and their valid values."""

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Refuse settings that `resource` must not have, alone or together; raises `ApiError`.

        `configs` are all settings that it would have of its own. This does not check whether the resource
        exists.
        """
        ...

    def list_default(self, resource_type: int, name: str) -> str | None:
        """The default of a setting that is a list, its items joined by commas; None for any other setting."""
        ...


def decide_new_topic_configs(
    name: str, configs: Mapping[str, str | None], rules: ConfigRules
) -> list[MetadataRecord]:
    """The records with the settings of a new topic; raises `ApiError`."""
    unset = [key for key, value in configs.items() if value is None]
    if unset:
        raise ApiError(
            ErrorCode.invalid_config, f"Null value not supported for topic configs: {','.join(unset)}"
        )
    resource = ConfigResource(ResourceType.TOPIC, name)
    given = {key: value for key, value in configs.items() if value is not None}
    rules.check(resource, given)
    return [_config_record(resource, key, value) for key, value in given.items()]


def decide_alter_configs(
    image: MetadataImage, requests: Sequence[ResourceChange], rules: ConfigRules
) -> tuple[list[MetadataRecord], list[ApiError | None]]:
    """The records for the resources whose changes are all allowed, and the error of each resource."""
    records: list[MetadataRecord] = []
    errors: list[ApiError | None] = []
    for request in requests:
        try:
            records.extend(_decide_resource(image, request, rules))
            errors.append(None)
        except ApiError as error:
            errors.append(without_frames(error))
    return records, errors


def decide_replace_configs(
    image: MetadataImage, requests: Sequence[ResourceReplacement], rules: ConfigRules
) -> tuple[list[MetadataRecord], list[ApiError | None]]:
    """The same for resources that are to have exactly these settings."""
    return decide_alter_configs(image, [_as_change(image, request) for request in requests], rules)


def _as_change(image: MetadataImage, request: ResourceReplacement) -> ResourceChange:
    current = image.configs(request.resource.resource_type, request.resource.name)
    given = [SettingChange(name, Operation.SET, value) for name, value in request.configs.items()]
    left_out = [
        SettingChange(name, Operation.DELETE, None) for name in current if name not in request.configs
    ]
    return ResourceChange(request.resource, [*given, *left_out])


def _decide_resource(
    image: MetadataImage, request: ResourceChange, rules: ConfigRules
) -> list[MetadataRecord]:
    resource = request.resource
    current = image.configs(resource.resource_type, resource.name)
    records: list[MetadataRecord] = []
    result = dict(current)
    for change in request.changes:
        value = _new_value(resource, change, current.get(change.name), rules)
        if value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = value
        if value != current.get(change.name):
            records.append(_config_record(resource, change.name, value))
    rules.check(resource, result)
    if resource.resource_type == ResourceType.TOPIC and resource.name not in image.topics_by_name:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"The topic '{resource.name}' does not exist.")
    return records


def _new_value(
    resource: ConfigResource, change: SettingChange, current: str | None, rules: ConfigRules
) -> str | None:
    if change.operation == Operation.DELETE:
        return None
    if change.value is None:
        raise ApiError(ErrorCode.invalid_request, f"Null value not supported for : {change.name}")
    value = change.value
    if change.operation != Operation.SET:
        value = _new_list(
            resource, change.name, Operation(change.operation), change.value.split(","), current, rules
        )
    if len(value) > _VALUE_LENGTH_MAX:
        raise ApiError(
            ErrorCode.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{_VALUE_LENGTH_MAX} bytes.",
        )
    return value


def _new_list(
    resource: ConfigResource,
    name: str,
    operation: Operation,
    items: Sequence[str],
    current: str | None,
    rules: ConfigRules,
) -> str:
    default = rules.list_default(resource.resource_type, name)
    if default is None:
        raise ApiError(ErrorCode.invalid_config, _not_a_list(resource, operation, name))
    old = [item for item in (default if current is None else current).split(",") if item]
    if operation is Operation.APPEND:
        return ",".join([*old, *(item for item in items if item not in old)])
    return ",".join(item for item in old if item not in items)


def _not_a_list(resource: ConfigResource, operation: Operation, name: str) -> str:
    if resource.resource_type == ResourceType.BROKER:
        return f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    return f"Can't {operation.name} to key {name} because its type is not LIST."


def _config_record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.resource_type, resource_name=resource.name, name=name, value=value
    )
