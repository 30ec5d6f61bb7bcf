"""ListConfigResources (key 74, KIP-1142): the messages of version 1.

Version 0 has no resource types: it asks for client metrics, and its answer says nothing of types.
"""

from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_config_resources.v1.response import ConfigResource, ListConfigResourcesResponse

__all__ = [
    "ConfigResource",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
]
