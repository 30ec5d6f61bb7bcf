"""ApiVersions version 5 (KIP-1242): the request names the cluster and the node that the client means."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.api_versions.v4 import request as request_v4
from kio.schema.api_versions.v4 import response as response_v4
from kio.schema.types import BrokerId
from kio.static.primitive import i16

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest(request_v4.ApiVersionsRequest):
    __version__: ClassVar[i16] = i16(5)
    cluster_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The cluster that the client means to reach; null until the client knows it."""
    node_id: BrokerId = field(metadata={"kafka_type": "int32"}, default=BrokerId(-1))
    """The node that the client means to reach; -1 until the client knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse(response_v4.ApiVersionsResponse):
    __version__: ClassVar[i16] = i16(5)
