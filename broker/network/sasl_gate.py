"""The gate of a listener with SASL: no request passes before its client has authenticated (KIP-43, KIP-152).

Each connection has a gate in front of the dispatcher. It accepts ApiVersions, then SaslHandshake, then the
messages of the chosen mechanism, in SaslAuthenticate or, after SaslHandshake 0, in frames of their own. Then
it opens: if the session has no end (`connections.max.reauth.ms`) it is taken away, and costs nothing more.
Else it closes the connection at the first request after the end, unless the client has authenticated again
(KIP-368), with the same mechanism and as the same principal.

A refusal is answered after `connection.failed.authentication.delay.ms`, and closes the connection. A client
that does not authenticate in time is cut off.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, cast

from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from barnabas.broker.network.dispatch import Answer, Dispatcher, PendingAnswer, encode_answer
from barnabas.broker.network.handler import NO_RESPONSE, ClientConnection, Response
from barnabas.broker.network.listener_sasl import ListenerSasl
from barnabas.broker.security.exchanges import AuthenticationRefused, Exchange, InvalidCredentials
from barnabas.broker.security.principal import Principal
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import decode_request
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.header import RequestHeader, decode_request_header
from barnabas.protocol.primitive import long_milliseconds
from barnabas.runtime.response_budget import EncodedBody

if TYPE_CHECKING:
    from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
    from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

NEVER_MS: Final = 2**62
"""After all times."""

_LENGTH: Final = struct.Struct(">i")


class GuardedConnection(ClientConnection, Protocol):
    """A connection, as its gate uses it."""

    principal: Principal

    def drain(self) -> None:
        """Start no more requests, and close once every started request is answered."""
        ...

    def cut_off(self, reason: str) -> None:
        """Close now, with a line in the log."""
        ...

    def admit(self, *, for_ever: bool) -> None:
        """The client has authenticated: its requests may be large. With `for_ever` the gate can go."""
        ...


class _State(Enum):
    BEGIN = "no mechanism is chosen"
    MESSAGES = "the mechanism is chosen"
    RAW_MESSAGES = "the mechanism is chosen, and its messages have no headers"
    OPEN = "authenticated"
    REFUSED = "refused"


class SaslListener(ListenerSasl):
    """The SASL of one listener, with the gates of its connections."""

    def gate(self, connection: GuardedConnection, dispatcher: Dispatcher) -> SaslGate:
        return SaslGate(connection, dispatcher, self)


_RAW: Final = RequestHeader(ApiKey.SASL_AUTHENTICATE, 0, 0, None, 0, APIS[ApiKey.SASL_AUTHENTICATE])
"""Stands for the header of a message without one."""

_SHOWN_CHARACTERS: Final = 40
"""Of a text that the client has chosen."""

_SHORTEST_SESSION_MS: Final = 1000
"""A client may authenticate again after this time."""


class SaslGate:
    """The gate of one connection. It is in the place of the dispatcher until it is taken away."""

    def __init__(self, connection: GuardedConnection, dispatcher: Dispatcher, sasl: ListenerSasl) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._sasl = sasl
        self._state = _State.BEGIN
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._began_ms = self._ends_ms = NEVER_MS
        """Monotonic: of the session."""
        self._step: asyncio.Task[object] | None = None
        """Computes or delays the answer to a message."""
        self._timeout: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The connection is made, after the handshake of TLS if there is one."""
        loop = asyncio.get_running_loop()
        self._timeout = loop.call_later(self._sasl.timeout_seconds, self._out_of_time)

    def close(self) -> None:
        """The connection is gone: nobody waits for the end of its authentication."""
        self._end_timeout()
        if self._step is not None:
            self._step.cancel()

    def start(self, frame: bytes | memoryview) -> Answer | PendingAnswer:
        """See `Dispatcher.start`."""
        match self._state:
            case _State.OPEN:
                return self._pass(frame)
            case _State.MESSAGES:
                return self._message(frame)
            case _State.RAW_MESSAGES:
                return self._wait(_RAW, self._authenticate(bytes(frame), is_raw=True))
            case _State.REFUSED:
                raise FrameError("The client has not authenticated.")
            case _:
                return self._begin(frame)

    def answer(self, pending: PendingAnswer, response: Response) -> Answer:
        """See `Dispatcher.answer`."""
        if pending.header is _RAW and isinstance(response, EncodedBody):
            return Answer(list(response.buffers))
        return self._dispatcher.answer(pending, response)

    def _begin(self, frame: bytes | memoryview) -> Answer | PendingAnswer:
        api_key = int.from_bytes(frame[:2])
        if api_key == ApiKey.API_VERSIONS:
            return self._dispatcher.start(self._connection, frame)
        if api_key == ApiKey.SASL_HANDSHAKE:
            return self._handshake(frame)
        raise FrameError(f"API {api_key} was requested before the client has authenticated.")

    def _pass(self, frame: bytes | memoryview) -> Answer | PendingAnswer:
        """A request of a client that has authenticated."""
        now_ms = self._sasl.monotonic_ms()
        is_handshake = int.from_bytes(frame[:2]) == ApiKey.SASL_HANDSHAKE
        if is_handshake and self._ends_ms != NEVER_MS and now_ms - self._began_ms >= _SHORTEST_SESSION_MS:
            return self._handshake(frame)
        if now_ms > self._ends_ms:
            self._sasl.expired.add()
            raise FrameError("The session has ended, and the client has not authenticated again.")
        return self._dispatcher.start(self._connection, frame)

    def _handshake(self, frame: bytes | memoryview) -> Answer | PendingAnswer:
        header, request = _decode(frame)
        mechanism = cast("SaslHandshakeRequest", request).mechanism
        offered = tuple(self._sasl.session_ms)
        if mechanism not in offered:
            refusal = SaslHandshakeResponse(
                error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=offered
            )
            return self._wait(
                header, self._refuse(f"Unsupported SASL mechanism {mechanism[:_SHOWN_CHARACTERS]}", refusal)
            )
        if self._mechanism not in ("", mechanism):
            raise FrameError(
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._mechanism}'"
            )
        self._mechanism = mechanism
        self._exchange = self._sasl.begin(mechanism)
        self._state = _State.MESSAGES if header.api_version else _State.RAW_MESSAGES
        assert header.spec is not None
        agreed = SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=offered)
        return encode_answer(header.spec, header, agreed)

    def _message(self, frame: bytes | memoryview) -> PendingAnswer:
        if int.from_bytes(frame[:2]) != ApiKey.SASL_AUTHENTICATE:
            raise FrameError(f"API {int.from_bytes(frame[:2])} was requested during the authentication.")
        header, request = _decode(frame)
        message = cast("SaslAuthenticateRequest", request).auth_bytes
        return self._wait(header, self._authenticate(message, is_raw=False))

    def _wait(self, header: RequestHeader, reply: Awaitable[Response]) -> PendingAnswer:
        """While it lasts, no other request of the connection begins (`handler`: the reply is a coroutine)."""
        assert header.spec is not None
        now_ms = self._sasl.monotonic_ms()
        return PendingAnswer(header.spec, header, reply, now_ms, now_ms, None)

    async def _authenticate(self, message: bytes, *, is_raw: bool) -> Response:
        assert self._exchange is not None
        self._step = asyncio.current_task()
        try:
            said = await self._exchange.step(message)
            if self._exchange.principal is None:
                session_ms = 0
            else:
                session_ms = self._complete(self._exchange.principal, is_raw=is_raw)
        except AuthenticationRefused as error:
            return await self._refuse(*self._refusal(error, is_raw=is_raw))
        finally:
            self._step = None
        if is_raw:
            return EncodedBody([_LENGTH.pack(len(said)), said])
        return SaslAuthenticateResponse(
            error_code=ErrorCode.none,
            error_message="",
            auth_bytes=said,
            session_lifetime=long_milliseconds(session_ms),
        )

    def _complete(self, principal: Principal, *, is_raw: bool) -> int:
        """Opens the gate; returns the length of the session in ms, 0 for one without an end. Raises
        `AuthenticationRefused`.
        """
        is_again, before = self._began_ms != NEVER_MS, self._connection.principal
        if is_again and principal != before:
            raise AuthenticationRefused(
                f"Cannot change principals during re-authentication from {before.kind}.{before.name}: "
                f"{principal.kind}.{principal.name}"
            )
        session_ms = self._sasl.session_ms[self._mechanism]
        self._began_ms = self._sasl.monotonic_ms()
        self._ends_ms = self._began_ms + session_ms if session_ms else NEVER_MS
        self._state = _State.OPEN
        self._exchange = None
        self._end_timeout()
        self._sasl.succeeded(is_again=is_again)
        self._connection.principal = principal
        self._connection.admit(for_ever=not session_ms and not is_raw)
        return session_ms

    def _refusal(self, error: AuthenticationRefused, *, is_raw: bool) -> tuple[str, Response]:
        reason = str(error)
        if isinstance(error, InvalidCredentials):
            kind = "authentication" if self._began_ms == NEVER_MS else "re-authentication"
            reason = (
                f"Authentication failed during {kind} due to invalid credentials with SASL mechanism "
                f"{self._mechanism}"
            )
        if is_raw:
            return reason, NO_RESPONSE
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.sasl_authentication_failed,
            error_message=reason,
            auth_bytes=b"",
            session_lifetime=long_milliseconds(0),
        )
        return reason, response

    async def _refuse(self, reason: str, response: Response) -> Response:
        """Answers after the delay, and closes the connection then."""
        self._state = _State.REFUSED
        self._step = asyncio.current_task()
        self._end_timeout()
        self._sasl.failed(self._connection.client_host, reason, is_again=self._began_ms != NEVER_MS)
        await asyncio.sleep(self._sasl.failure_delay_seconds)
        self._connection.drain()
        return response

    def _end_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _out_of_time(self) -> None:
        self._sasl.failed(self._connection.client_host, "out of time", is_again=False)
        self._connection.cut_off("it has not authenticated in time (connection.authentication.timeout.ms)")


def _decode(frame: bytes | memoryview) -> tuple[RequestHeader, object]:
    """The header and the request. Raises `FrameError`."""
    header = decode_request_header(frame)
    if header.spec is None or not header.spec.serves(header.api_version):
        raise FrameError(f"API {header.api_key} is not served in version {header.api_version}.")
    return header, decode_request(header.api_key, header.api_version, frame, header.body_offset)
