"""DescribeConfigs (key 32, versions 1 to 4; KIP-133, KIP-226, KIP-569): settings and their sources.

- A topic must exist. A group need not; it then has the defaults. The settings of the metadata log are those
  of the topic `__cluster_metadata`, all of them read-only (KIP-630).
- The broker "" stands for the dynamic defaults of all brokers; only those that are set are listed.
- Loggers (type 8), client metrics (type 16) and unknown types are INVALID_REQUEST.

An administration page asks for a thousand topics, nearly all of them with the same settings. So each distinct
setting is encoded once in a request, and the settings of a resource are looked up once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsSynonym

from barnabas.broker.config.effective import ConfigEntry
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, invalid_topic_name
from barnabas.protocol.encode.describe_configs import (
    encode_end,
    encode_resource,
    encode_response_start,
    setting_encoder,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i8
from barnabas.protocol.varint import Buffer
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import Turns, in_turns

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage


class Parts(NamedTuple):
    metadata: Controller
    effective_config: EffectiveConfig
    node_id: int


def handle_describe_configs(parts: Parts, context: RequestContext, request: DescribeConfigsRequest) -> Reply:
    return in_turns(_answer(parts, context, request))


async def _answer(parts: Parts, context: RequestContext, request: DescribeConfigsRequest) -> EncodedBody:
    version = context.api_version
    turns, described = Turns(), _Described(parts, version, request)
    buffers: list[Buffer] = [encode_response_start(version, len(request.resources))]
    for resource in request.resources:
        encoded = described.encode(resource)
        buffers += encoded
        await turns.took(len(encoded))
    return EncodedBody([*buffers, encode_end(version)])


class _Described:
    """The resources that one request has named so far, and the bytes of their settings."""

    def __init__(self, parts: Parts, version: int, request: DescribeConfigsRequest) -> None:
        self._parts = parts
        self._version = version
        self._request = request
        self._encode = setting_encoder(version)
        self._entries: dict[tuple[int, str], Sequence[ConfigEntry]] = {}
        self._encoded: dict[ConfigEntry, bytes] = {}

    def encode(self, resource: DescribeConfigsResource) -> list[bytes]:
        error_code, message = ErrorCode.none, ""
        entries: Sequence[ConfigEntry] = ()
        try:
            entries = self._entries_of(resource)
        except ApiError as error:
            error_code, message = error.code, error.message or ""
        # An empty array asks for all settings, as null does.
        keys = frozenset(resource.configuration_keys or ())
        return encode_resource(
            self._version,
            error_code,
            message,
            resource.resource_type,
            resource.resource_name,
            [self._setting(entry) for entry in entries if not keys or entry.setting.name in keys],
        )

    def _entries_of(self, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
        key = (int(resource.resource_type), resource.resource_name)
        if key not in self._entries:
            self._entries[key] = _entries(self._parts, resource)
        return self._entries[key]

    def _setting(self, entry: ConfigEntry) -> bytes:
        encoded = self._encoded.get(entry)
        if encoded is None:
            encoded = self._encoded[entry] = self._encode(_config(entry, self._request))
        return encoded


def _entries(parts: Parts, resource: DescribeConfigsResource) -> Sequence[ConfigEntry]:
    """The settings of one resource; raises `ApiError`."""
    name, effective = resource.resource_name, parts.effective_config
    match int(resource.resource_type):
        case ResourceType.TOPIC if name == METADATA_TOPIC:
            return effective.metadata_topic_entries()
        case ResourceType.TOPIC:
            _check_topic(parts.metadata.image, name)
            return effective.topic_entries(parts.metadata.image.configs(ResourceType.TOPIC, name))
        case ResourceType.BROKER if not name:
            return effective.all_brokers_entries()
        case ResourceType.BROKER:
            _check_broker_name(parts.node_id, name)
            return effective.broker_entries()
        case ResourceType.GROUP:
            if not name:
                raise ApiError(ErrorCode.invalid_request, "Group name must not be empty")
            return effective.group_entries(name)
        case other:
            raise ApiError(ErrorCode.invalid_request, f"Unsupported resource type: {other}")


def _check_topic(image: MetadataImage, name: str) -> None:
    reason = invalid_topic_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, reason)
    if name not in image.topics_by_name:
        raise ApiError(ErrorCode.unknown_topic_or_partition)


def _check_broker_name(node_id: int, name: str) -> None:
    try:
        given = int(name)
    except ValueError:
        message = f"Broker id must be an integer, but it is: {name}"
        raise ApiError(ErrorCode.invalid_request, message) from None
    if given != node_id:
        message = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        raise ApiError(ErrorCode.invalid_request, message)


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.setting.name,
        value=None if entry.setting.is_secret else entry.value,
        read_only=not entry.setting.dynamic,
        config_source=i8(entry.source),
        is_sensitive=entry.setting.is_secret,
        synonyms=tuple(
            DescribeConfigsSynonym(
                name=synonym.name,
                value=None if entry.setting.is_secret else synonym.value,
                source=i8(synonym.source),
            )
            for synonym in synonyms
        ),
        config_type=i8(entry.setting.type),
        documentation=entry.setting.doc if request.include_documentation else None,
    )
