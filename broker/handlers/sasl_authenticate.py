"""SaslAuthenticate (key 36, versions 0 to 2): outside of an authentication it is ILLEGAL_SASL_STATE, as in
Kafka; see `sasl_handshake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import long_milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """It uses no part of the broker."""


def handle_sasl_authenticate(
    parts: Parts, context: RequestContext, request: SaslAuthenticateRequest
) -> Reply:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.illegal_sasl_state,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
        session_lifetime=long_milliseconds(0),
    )
