"""SaslHandshake (key 17, versions 0 and 1): on a connection that cannot, or need not, authenticate.

The gate of a listener with SASL answers it during the authentication (`broker/network/sasl_gate.py`); here it
is ILLEGAL_SASL_STATE, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext


class Parts(NamedTuple):
    """It uses no part of the broker."""


def handle_sasl_handshake(parts: Parts, context: RequestContext, request: SaslHandshakeRequest) -> Reply:
    return SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state, mechanisms=())
