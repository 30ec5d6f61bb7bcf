"""Authenticates this client to a broker with one of SASL's mechanisms (KIP-43, KIP-152, KIP-368).

The handshake agrees on the mechanism; SaslAuthenticate then carries the mechanism's messages in both
directions. A refusal raises `AuthenticationError` with the broker's explanation, because a retry would fail
as well. `Connection` decides which connection authenticates, and when it does so again.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from barnabas.client.errors import AuthenticationError, UnsupportedBrokerError
from barnabas.client.network.scram import ScramClient
from barnabas.client.network.security import Security
from barnabas.protocol.client.api import ClientApi
from barnabas.protocol.client.consumer_apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.errors import ErrorCode

NONCE_BYTES: Final = 24

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MS: Final = timedelta(milliseconds=1)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Ask(Protocol):
    """Sends a request, and returns the response."""

    def __call__(self, api: ClientApi[_Request, _Response], request: _Request, /) -> Awaitable[_Response]: ...


async def authenticate(ask: Ask, security: Security) -> int:
    """Authenticate. Returns after how many milliseconds this must be repeated; 0 for never."""
    await _agree_on_mechanism(ask, security.mechanism)
    if security.mechanism == "PLAIN":
        _, lifetime_ms = await _say(ask, f"\0{security.username}\0{security.password}".encode())
        return lifetime_ms
    nonce = secrets.token_urlsafe(NONCE_BYTES)
    client = ScramClient(_HASHES[security.mechanism], security.username, security.password, nonce)
    challenge, _ = await _say(ask, client.first())
    last, lifetime_ms = await _say(ask, client.final(challenge))
    client.verify(last)
    return lifetime_ms


async def _agree_on_mechanism(ask: Ask, mechanism: str) -> None:
    try:
        response = await ask(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
    except UnsupportedBrokerError as error:
        raise AuthenticationError("this broker does not support SASL; see security.protocol") from error
    if response.error_code is ErrorCode.none:
        return
    if response.error_code is ErrorCode.unsupported_sasl_mechanism:
        offered = ", ".join(response.mechanisms)
        raise AuthenticationError(
            f"sasl.mechanism {mechanism} is not offered; the broker offers {offered or 'none'}"
        )
    if response.error_code is ErrorCode.illegal_sasl_state:
        raise AuthenticationError("this port does not use SASL; see security.protocol")
    raise AuthenticationError(f"the broker refuses: {response.error_code.name}")


async def _say(ask: Ask, said: bytes) -> tuple[bytes, int]:
    """The broker's answer to a message of the mechanism, and the session's lifetime in milliseconds."""
    response: Any = await ask(SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=said))
    if response.error_code is not ErrorCode.none:
        raise AuthenticationError(response.error_message or response.error_code.name)
    return response.auth_bytes, response.session_lifetime // _MS
