"""ApiVersions (key 18, KIP-35, KIP-511, KIP-584, KIP-1242): the messages of version 5.

Requests before version 3 do not name the client: empty strings. Requests before version 5 do not name the
cluster and the node. Features are for responses from version 3 on.
"""

from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey

from barnabas.protocol.newer.api_versions_v5 import ApiVersionsRequest, ApiVersionsResponse

__all__ = [
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "FinalizedFeatureKey",
    "SupportedFeatureKey",
]
