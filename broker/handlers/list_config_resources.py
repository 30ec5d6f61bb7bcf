"""ListConfigResources (key 74, versions 0 and 1; KIP-1142): the resources that have settings, by type.

All topics and brokers are listed, and the groups with settings of their own. There are no loggers and no
client metrics, so their lists are empty. Version 0 asks for client metrics only. Without types the request
asks for all; an unknown type is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_config_resources.v1.response import ConfigResource, ListConfigResourcesResponse

from barnabas.coordinator.metadata.image import ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage

_TYPES = frozenset[int](ResourceType)


class Parts(NamedTuple):
    metadata: Controller
    node_id: int


def handle_list_config_resources(
    parts: Parts, context: RequestContext, request: ListConfigResourcesRequest
) -> Reply:
    asked = set(map(int, request.resource_types))
    if context.api_version == 0:
        asked = {int(ResourceType.CLIENT_METRICS)}
    if not asked <= _TYPES:
        return _response(ErrorCode.unsupported_version, [])
    names = _names(parts.metadata.image, parts.node_id)
    return _response(
        ErrorCode.none,
        [
            ConfigResource(resource_name=name, resource_type=i8(resource_type))
            for resource_type in ResourceType
            if not asked or resource_type in asked
            for name in names.get(resource_type, ())
        ],
    )


def _names(image: MetadataImage, node_id: int) -> dict[ResourceType, list[str]]:
    return {
        ResourceType.TOPIC: list(image.topics_by_name),
        ResourceType.BROKER: [str(node_id)],
        ResourceType.GROUP: image.configured_names(ResourceType.GROUP),
    }


def _response(error_code: ErrorCode, resources: list[ConfigResource]) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(
        throttle_time=milliseconds(0), error_code=error_code, config_resources=tuple(resources)
    )
