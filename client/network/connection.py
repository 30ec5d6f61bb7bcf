"""One connection to one broker: frames, correlation ids, versions, and a deadline for each answer.

`Connection.open` returns a connection that has already agreed on versions (KIP-35): `ask` sends the newest
version of an API that both sides know. Kafka answers requests in their order, so several requests may be
outstanding, but a request that waits for records delays all requests sent after it. The users of this class
decide which requests share a connection: a share session, for example, ends with the connection that opened
it.

TLS and SASL are complete before `open` returns. If the broker limits the lifetime of an authentication
(KIP-368), the connection authenticates again in time, because a lost connection would cost every lock.
Requests made meanwhile wait until the new authentication is complete.

A connection is lost as a whole. All outstanding requests then fail with `BrokerUnavailableError`, or with
`SecurityError` if one side refused the other; this class sends nothing again. Bounds: the size of a frame,
the outstanding requests, the time for an answer.
"""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.metadata import version as package_version
from socket import gaierror
from typing import Any, Final, NamedTuple, TypeVar, cast

from barnabas.client.errors import (
    AuthenticationError,
    BrokerUnavailableError,
    SecurityError,
    UnsupportedBrokerError,
    broker_error,
)
from barnabas.client.network.address import Address
from barnabas.client.network.sasl import authenticate
from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.client.network.tls import is_refusal, reason, tls_context
from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import ClientApi, read_correlation_id
from barnabas.protocol.client.consumer_apis import API_VERSIONS
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.newer.api_versions_v5 import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.varint import Buffer

FRAME_BYTES_MAX: Final = 512 * 1024 * 1024
"""The longest response accepted. A fetch may exceed the requested size by one batch per partition."""
REQUESTS_MAX: Final = 16
"""Outstanding requests on one connection; each user of a connection has at most two."""

REAUTHENTICATION_FRACTION: Final = 0.8
"""The share of a session's lifetime after which the connection authenticates again; the rest is for requests
that wait at the broker."""

_TLS_ALERT: Final = 0x1503
"""The first bytes of a TLS alert, which a TLS broker sends in answer to plaintext."""
_MS_PER_SECOND: Final = 1000
_OWN_KEY: Final = int(API_VERSIONS.key)
_OF_AUTHENTICATION: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class _Asked(NamedTuple):
    """An outstanding request."""

    api: ClientApi[Any, Any]
    version: int
    answer: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class Connection(asyncio.BufferedProtocol):
    """One connection, created only by `open`."""

    def __init__(self, address: Address, client_id: str, request_timeout_ms: int, security: Security) -> None:
        self.address = address
        self._security = security
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder(FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._asked: dict[int, _Asked] = {}
        self._next_correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        """By API key, the versions that the broker supports, both ends inclusive."""
        self._features: frozenset[str] = frozenset()
        """The features that the broker supports."""
        self._is_used = False
        """Whether a request other than ApiVersions was answered."""
        self._held: list[bytes] | None = None
        """Requests that wait during a new authentication; None at all other times."""
        self._renewal: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._error: BrokerUnavailableError | SecurityError | None = None

    @classmethod
    async def open(
        cls, address: Address, *, client_id: str, request_timeout_ms: int, security: Security = PLAINTEXT
    ) -> Connection:
        """A connection with versions agreed, and authenticated where the settings ask for it.

        Raises `BrokerUnavailableError`, also if the server does not speak Kafka; `SecurityError` if one side
        refuses the other; `SecurityOptionError` for invalid certificates and keys.
        """
        loop = asyncio.get_running_loop()
        tls = tls_context(security) if security.uses_tls else None
        try:
            async with asyncio.timeout(request_timeout_ms / _MS_PER_SECOND):
                _, connection = await loop.create_connection(
                    lambda: cls(address, client_id, request_timeout_ms, security),
                    *address,
                    ssl=tls,
                    server_hostname=None if tls is None else address.host,
                )
        except (OSError, TimeoutError) as error:
            raise _not_reached(address, error, uses_tls=tls is not None) from error
        try:
            await connection._agree_on_versions()
            if security.uses_sasl:
                await connection._authenticate()
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._error is None

    def supports(self, feature: str) -> bool:
        """Whether the broker has this extension of the protocol."""
        return feature in self._features

    def version(self, api: ClientApi[_Request, _Response]) -> int:
        """The newest version that both sides know.

        Raises `UnsupportedBrokerError` if there is none, or if the broker lacks the feature of the API.
        """
        if api.feature is not None and api.feature not in self._features:
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version,
                f"{self.address} does not have the feature {api.feature}, an extension by Barnabas",
            )
        oldest, newest = self._versions.get(api.key, (0, -1))
        version = min(newest, api.max_version)
        if version < max(oldest, api.min_version):
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version,
                f"{self.address} does not support {api.key.name} v{api.min_version} to v{api.max_version}",
            )
        return version

    async def ask(
        self, api: ClientApi[_Request, _Response], request: _Request, *, wait_ms: int = 0
    ) -> _Response:
        """The response, see `start`.

        Raises `BrokerUnavailableError`, `SecurityError` and `UnsupportedBrokerError`.
        """
        return await self.start(api, request, wait_ms=wait_ms)

    def start(
        self, api: ClientApi[_Request, _Response], request: _Request, *, wait_ms: int = 0
    ) -> asyncio.Future[_Response]:
        """Send a request; the future gets its response.

        `wait_ms` is the wait that the request allows the broker.
        """
        return self._send(api, self.version(api), request, self._request_timeout_ms + wait_ms)

    def close(self) -> None:
        """Close the connection; outstanding requests fail."""
        self._fail(BrokerUnavailableError(f"The connection to {self.address} was closed."))

    def _send(
        self, api: ClientApi[_Request, _Response], version: int, request: _Request, timeout_ms: int
    ) -> asyncio.Future[_Response]:
        assert len(self._asked) < REQUESTS_MAX, "too many requests on one connection"
        answer: asyncio.Future[_Response] = self._loop.create_future()
        if self._error is not None or self._transport is None:
            answer.set_exception(self._error or BrokerUnavailableError(f"{self.address} is not connected."))
            return answer
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        timer = self._loop.call_later(timeout_ms / _MS_PER_SECOND, self._time_out, api, timeout_ms)
        self._asked[correlation_id] = _Asked(api, version, answer, timer)
        frame = api.encode(version, correlation_id, self._client_id, request)
        if self._held is None or api.key in _OF_AUTHENTICATION:
            self._transport.write(frame)
        else:
            self._held.append(frame)
        return answer

    async def _agree_on_versions(self) -> None:
        response = await self._ask_versions(API_VERSIONS.max_version)
        if response.error_code is ErrorCode.unsupported_version:
            newest = next((api.max_version for api in response.api_keys if api.api_key == _OWN_KEY), 0)
            response = await self._ask_versions(min(newest, API_VERSIONS.max_version))
        if response.error_code is not ErrorCode.none:
            raise broker_error(response.error_code, None)
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self._features = frozenset(feature.name for feature in response.supported_features)

    def _ask_versions(self, version: int) -> asyncio.Future[ApiVersionsResponse]:
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=_own_version())
        return self._send(API_VERSIONS, version, request, self._request_timeout_ms)

    async def _authenticate(self) -> None:
        """Authenticate, and schedule the next authentication before the broker requires it."""
        try:
            lifetime_ms = await authenticate(self.ask, self._security)
        except AuthenticationError as error:
            raise AuthenticationError(
                f"{self.address} does not let {self._security.username} in: {error}"
            ) from error
        if lifetime_ms > 0:
            pause = lifetime_ms / _MS_PER_SECOND * REAUTHENTICATION_FRACTION
            self._renewal = self._loop.call_later(pause, self._begin_renewal)

    def _begin_renewal(self) -> None:
        self._held = []
        self._renewal = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._authenticate()
        except (BrokerUnavailableError, SecurityError) as error:
            self._renewal = None
            self._fail(error)
            return
        held, self._held = self._held, None
        if held and self._transport is not None:
            self._transport.write(b"".join(held))

    def _time_out(self, api: ClientApi[_Request, _Response], timeout_ms: int) -> None:
        self._fail(
            BrokerUnavailableError(
                f"{self.address} did not answer {ApiKey(api.key).name} in {timeout_ms} ms."
            )
        )

    def _fail(self, error: BrokerUnavailableError | SecurityError) -> None:
        """Close the connection with this error, unless it has failed before."""
        if self._error is not None:
            return
        self._error = error
        if self._renewal is not None:
            self._renewal.cancel()
        if self._transport is not None:
            self._transport.abort()
        for asked in self._asked.values():
            asked.timer.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(error)
        self._asked.clear()

    def _take(self, frame: Buffer | FrameError) -> None:
        if isinstance(frame, FrameError):
            raise frame
        correlation_id = read_correlation_id(frame)
        asked = self._asked.get(correlation_id)
        if asked is None:
            raise FrameError("A response belongs to no request.")
        response = asked.api.decode(asked.version, frame)
        self._is_used |= asked.api.key != _OWN_KEY
        del self._asked[correlation_id]
        asked.timer.cancel()
        if not asked.answer.done():
            asked.answer.set_result(response)

    # asyncio calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No assert: uvloop's TLS transport works as a Transport but is not a subclass.
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        if self._error is not None:
            return
        try:
            for frame in self._decoder.buffer_updated(nbytes):
                self._take(frame)
        except FrameError as error:
            self._fail(BrokerUnavailableError(f"{self.address} sent an unreadable response: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if is_refusal(exc):
            self._fail(SecurityError(f"{self.address} and this client do not agree on TLS: {reason(exc)}"))
        elif self._decoder.awaited_bytes >> 16 == _TLS_ALERT and not self._versions:
            self._fail(SecurityError(f"{self.address} speaks TLS; see security.protocol."))
        else:
            message = f"The connection to {self.address} is lost: {exc or 'closed by the broker'}"
            self._fail(BrokerUnavailableError(message + self._hint()))

    def _hint(self) -> str:
        """A broker that expects TLS or SASL closes the connection without an error message."""
        if self._is_used or self._security.uses_sasl:
            return ""
        wanted = "TLS or SASL" if not self._security.uses_tls else "SASL"
        return f" before it answered; does it want {wanted} (security.protocol)?"


def _not_reached(
    address: Address, error: OSError, *, uses_tls: bool
) -> BrokerUnavailableError | SecurityError:
    if is_refusal(error):
        return SecurityError(f"{address} and this client do not agree on TLS: {reason(error)}")
    if uses_tls and not isinstance(error, ConnectionRefusedError | TimeoutError | gaierror):
        lost = "the connection was lost in the TLS handshake; does this port use TLS (security.protocol)?"
        return BrokerUnavailableError(f"{address} cannot be reached: {lost}")
    return BrokerUnavailableError(f"{address} cannot be reached: {error or 'no answer in time'}")


@cache
def _own_version() -> str:
    """Cached, because reading a package's metadata costs a millisecond."""
    return package_version("barnabas")
