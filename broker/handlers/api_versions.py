"""ApiVersions (key 18, versions 0 to 5; KIP-35, KIP-511, KIP-584, KIP-1242): the served APIs and versions.

- From version 3 on the client names its software. A name that Kafka refuses is INVALID_REQUEST, without APIs.
- From version 5 on a client that knows the cluster and the node names both; only one of them is
  INVALID_REQUEST. If the cluster or the node is another one, the response is REBOOTSTRAP_REQUIRED without
  APIs, and the client starts again from its bootstrap servers.
- Features are in responses from version 3 on. Version 3 lacks those with a minimum level of 0, because its
  clients cannot read such a range (KIP-1022). The extensions of Barnabas are among them, always finalized.
- The APIs between brokers are listed on the listener for brokers only.
- The dispatcher answers versions that are not served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey

from barnabas.coordinator.metadata.features import EXTENSIONS, SUPPORTED_FEATURES
from barnabas.protocol.api import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.newer.api_versions_v5 import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.primitive import i16, i64, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
_NAMES_ITS_SOFTWARE_FROM = 3
_READS_LEVEL_0_FROM = 4
_NO_FEATURES_EPOCH = -1
_NO_NODE = -1


class Parts(NamedTuple):
    metadata: Controller
    cluster_id: str
    node_id: int


def _served(*, inter_broker: bool) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            api_key=i16(spec.key), min_version=i16(spec.advertised_min), max_version=i16(spec.max_version)
        )
        for spec in APIS.values()
        if inter_broker or not spec.inter_broker
    )


_FOR_CLIENTS, _FOR_BROKERS = _served(inter_broker=False), _served(inter_broker=True)


def handle_api_versions(parts: Parts, context: RequestContext, request: ApiVersionsRequest) -> Reply:
    error_code = _error_code(parts, context.api_version, request)
    if error_code is not ErrorCode.none:
        return ApiVersionsResponse(
            error_code=error_code,
            api_keys=(),
            throttle_time=milliseconds(0),
            finalized_features_epoch=i64(_NO_FEATURES_EPOCH),
        )
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=_FOR_BROKERS if context.listener.inter_broker else _FOR_CLIENTS,
        throttle_time=milliseconds(0),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=i16(least), max_version=i16(greatest))
            for name, (least, greatest) in (*SUPPORTED_FEATURES.items(), *EXTENSIONS.items())
            if least > 0 or context.api_version >= _READS_LEVEL_0_FROM
        ),
        finalized_features_epoch=i64(parts.metadata.last_offset),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
            for name, level in _finalized(parts.metadata.image)
        ),
    )


def _finalized(image: MetadataImage) -> Iterable[tuple[str, int]]:
    """The levels in force."""
    yield from image.features.items()
    for name, levels in EXTENSIONS.items():
        yield name, levels.greatest


def _error_code(parts: Parts, version: int, request: ApiVersionsRequest) -> ErrorCode:
    """Versions before 5 lack the cluster and the node; versions before 3 lack the software as well."""
    names_cluster, names_node = request.cluster_id is not None, request.node_id != _NO_NODE
    is_named = version < _NAMES_ITS_SOFTWARE_FROM or _names_its_software(request)
    if not is_named or names_cluster != names_node:
        return ErrorCode.invalid_request
    meant = request.cluster_id, request.node_id
    if names_cluster and meant != (parts.cluster_id, parts.node_id):
        return ErrorCode.rebootstrap_required
    return ErrorCode.none


def _names_its_software(request: ApiVersionsRequest) -> bool:
    name, version = request.client_software_name, request.client_software_version
    return bool(_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version))
