"""ApiVersions (key 18, KIP-35, KIP-511, KIP-584): the messages of version 4.

Requests before version 3 do not name the client: empty strings. Features are for responses from version 3
on.
"""

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = [
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "FinalizedFeatureKey",
    "SupportedFeatureKey",
]
