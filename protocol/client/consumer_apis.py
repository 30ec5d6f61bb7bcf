"""The APIs that consumers use, with the versions in use and the messages of the newest.

Older versions cannot name topics by id (KIP-516), or belong to brokers without share groups (KIP-932). Before
version 1 of SaslHandshake the bytes of the mechanism had no frame; since then they are in SaslAuthenticate
(KIP-152). A session lifetime of 0, the default in version 0 of SaslAuthenticate (KIP-368), never ends.
"""

from __future__ import annotations

from typing import Final

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.list_offsets.v11.request import ListOffsetsRequest
from kio.schema.list_offsets.v11.response import ListOffsetsResponse
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import ClientApi, kio_api
from barnabas.protocol.client.fetch_request import FetchBody, encode_fetch_request
from barnabas.protocol.client.fetch_response import FetchReply, decode_fetch_response
from barnabas.protocol.client.share_acknowledge_response import (
    ShareAcknowledgeReply,
    decode_share_acknowledge_response,
)
from barnabas.protocol.client.share_fetch_response import ShareFetchReply, decode_share_fetch_response
from barnabas.protocol.client.share_requests import (
    encode_share_acknowledge_request,
    encode_share_fetch_request,
)
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended import SHARE_TRANSACTIONS
from barnabas.protocol.extended.consumer_group_heartbeat_v1 import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.newer.api_versions_v5 import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.varint import Buffer

_ERROR_BYTES: Final = 2

# Version 5 only adds the intended cluster and node, which this project's clients do not name. Using it would
# cost one more request with each broker older than Kafka 4.4.
_ANY_API_VERSIONS: Final = kio_api(ApiKey.API_VERSIONS, range(5), ApiVersionsRequest, ApiVersionsResponse)


def _decode_api_versions(version: int, frame: Buffer, body_offset: int) -> ApiVersionsResponse:
    """A broker that does not know the version answers in version 0, which every client reads (KIP-511)."""
    code = int.from_bytes(frame[body_offset : body_offset + _ERROR_BYTES], "big", signed=True)
    readable = 0 if code == int(ErrorCode.unsupported_version) else version
    return _ANY_API_VERSIONS.decode_body(readable, frame, body_offset)


API_VERSIONS: Final = _ANY_API_VERSIONS._replace(decode_body=_decode_api_versions)
CONSUMER_GROUP_HEARTBEAT: Final = kio_api(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    range(1, 2),
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
METADATA: Final = kio_api(ApiKey.METADATA, range(12, 14), MetadataRequest, MetadataResponse)
FIND_COORDINATOR: Final = kio_api(
    ApiKey.FIND_COORDINATOR, range(4, 7), FindCoordinatorRequest, FindCoordinatorResponse
)
FETCH: Final[ClientApi[FetchBody, FetchReply]] = ClientApi(
    ApiKey.FETCH, 13, 18, encode_fetch_request, decode_fetch_response
)
LIST_OFFSETS: Final = kio_api(ApiKey.LIST_OFFSETS, range(7, 12), ListOffsetsRequest, ListOffsetsResponse)
SASL_HANDSHAKE: Final = kio_api(
    ApiKey.SASL_HANDSHAKE, range(1, 2), SaslHandshakeRequest, SaslHandshakeResponse
)
SASL_AUTHENTICATE: Final = kio_api(
    ApiKey.SASL_AUTHENTICATE, range(3), SaslAuthenticateRequest, SaslAuthenticateResponse
)
SHARE_GROUP_HEARTBEAT: Final = kio_api(
    ApiKey.SHARE_GROUP_HEARTBEAT, range(1, 2), ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
)
SHARE_FETCH: Final[ClientApi[ShareFetchBody, ShareFetchReply]] = ClientApi(
    ApiKey.SHARE_FETCH, 1, 2, encode_share_fetch_request, decode_share_fetch_response
)
SHARE_ACKNOWLEDGE: Final[ClientApi[ShareAcknowledgeBody, ShareAcknowledgeReply]] = ClientApi(
    ApiKey.SHARE_ACKNOWLEDGE, 1, 2, encode_share_acknowledge_request, decode_share_acknowledge_response
)
ACKNOWLEDGE_IN_TRANSACTION: Final = SHARE_ACKNOWLEDGE._replace(feature=SHARE_TRANSACTIONS)
"""With the tag of an extension (docs/protocol.md)."""
