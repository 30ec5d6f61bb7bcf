"""Metadata (key 3, KIP-516): the messages of version 13, and those of version 10, the last to say what may be
done to the cluster (KIP-430, KIP-700).

In version 0, which cannot say null, an empty array of topics asks for all of them; it arrives here as an
empty array.
"""

from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequestWithCluster
from kio.schema.metadata.v10.response import MetadataResponse as MetadataResponseWithCluster
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataRequestWithCluster",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
    "MetadataResponseWithCluster",
]
