"""One connection to one broker: frames, correlation ids, versions, and a deadline for each answer.

A connection that `Connection.open` answers has agreed on versions already (KIP-35): `ask` sends the newest
version of an API that both sides know. Kafka answers requests in their order, so any number may be under way;
what waits for records holds up whatever was sent behind it. Whose requests go over which connection is for
its users to say: a share session, for one, ends with the connection that opened it.

A connection is lost as a whole. Once it is, whatever was asked fails with `BrokerUnavailableError`; nothing
is sent again here. Bounds: the size of a frame, the requests under way, the time for an answer.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version as package_version
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.client.address import Address
from barnabas.client.errors import BrokerUnavailableError, UnsupportedBrokerError, broker_error
from barnabas.protocol.api import ApiKey
from barnabas.protocol.client_api import ClientApi, read_correlation_id
from barnabas.protocol.client_apis import API_VERSIONS
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.frame import FrameDecoder
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.varint import Buffer

FRAME_BYTES_MAX: Final = 512 * 1024 * 1024
"""The longest response that is received. A fetch's may exceed what was asked for by a batch per partition."""
REQUESTS_MAX: Final = 16
"""Requests under way on one connection: none of its users has more than two."""

_MS_PER_SECOND: Final = 1000
_OWN_KEY: Final = int(API_VERSIONS.key)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class _Asked(NamedTuple):
    """A request under way."""

    api: ClientApi[Any, Any]
    version: int
    answer: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class Connection(asyncio.BufferedProtocol):
    """One connection. Made by `open` alone."""

    def __init__(self, address: Address, client_id: str, request_timeout_ms: int) -> None:
        self.address = address
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder(FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._asked: dict[int, _Asked] = {}
        self._next_correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        """By API key, what the broker speaks, both ends inclusive."""
        self._error: BrokerUnavailableError | None = None

    @classmethod
    async def open(cls, address: Address, *, client_id: str, request_timeout_ms: int) -> Connection:
        """A connection that has agreed on versions.

        Raises `BrokerUnavailableError`, also if what listens there does not speak Kafka.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(request_timeout_ms / _MS_PER_SECOND):
                _, connection = await loop.create_connection(
                    lambda: cls(address, client_id, request_timeout_ms), address.host, address.port
                )
        except (OSError, TimeoutError) as error:
            raise BrokerUnavailableError(
                f"{address} cannot be reached: {error or 'no answer in time'}"
            ) from error
        try:
            await connection._agree_on_versions()
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._error is None

    def version(self, api: ClientApi[Any, Any]) -> int:
        """The newest version that both sides know. Raises `UnsupportedBrokerError` if there is none."""
        oldest, newest = self._versions.get(api.key, (0, -1))
        version = min(newest, api.max_version)
        if version < max(oldest, api.min_version):
            raise UnsupportedBrokerError(
                ErrorCode.unsupported_version,
                f"{self.address} has no {api.key.name} of version {api.min_version} to {api.max_version}",
            )
        return version

    async def ask(self, api: ClientApi[_Request, _Response], request: _Request) -> _Response:
        """The response. Raises `BrokerUnavailableError` and `UnsupportedBrokerError`."""
        return await self.start(api, request)

    def start(
        self, api: ClientApi[_Request, _Response], request: _Request, *, wait_ms: int = 0
    ) -> asyncio.Future[_Response]:
        """Send a request; its response comes later. `wait_ms` is how long the broker was told to wait itself.

        The future fails with `BrokerUnavailableError`. Raises `UnsupportedBrokerError`, and has sent nothing.
        """
        return self._send(api, self.version(api), request, self._request_timeout_ms + wait_ms)

    def close(self) -> None:
        """Drop the connection; what is under way fails."""
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
        self._transport.write(api.encode(version, correlation_id, self._client_id, request))
        return answer

    async def _agree_on_versions(self) -> None:
        response = await self._ask_versions(API_VERSIONS.max_version)
        if response.error_code is ErrorCode.unsupported_version:
            newest = next((one.max_version for one in response.api_keys if one.api_key == _OWN_KEY), 0)
            response = await self._ask_versions(min(newest, API_VERSIONS.max_version))
        if response.error_code is not ErrorCode.none:
            raise broker_error(response.error_code, None)
        self._versions = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}

    def _ask_versions(self, version: int) -> asyncio.Future[ApiVersionsResponse]:
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=package_version("barnabas")
        )
        return self._send(API_VERSIONS, version, request, self._request_timeout_ms)

    def _time_out(self, api: ClientApi[Any, Any], timeout_ms: int) -> None:
        self._fail(
            BrokerUnavailableError(
                f"{self.address} did not answer {ApiKey(api.key).name} in {timeout_ms} ms."
            )
        )

    def _fail(self, error: BrokerUnavailableError) -> None:
        """The connection is over, for this reason unless there was one before."""
        if self._error is not None:
            return
        self._error = error
        if self._transport is not None:
            self._transport.abort()
        for asked in self._asked.values():
            asked.timer.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(error)
        self._asked.clear()

    def _take(self, frame: Buffer) -> None:
        correlation_id = read_correlation_id(frame)
        asked = self._asked.get(correlation_id)
        if asked is None:
            raise FrameError("A response belongs to no request.")
        response = asked.api.decode(asked.version, frame)
        del self._asked[correlation_id]
        asked.timer.cancel()
        if not asked.answer.done():
            asked.answer.set_result(response)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        if self._error is not None:
            return
        try:
            for frame in self._decoder.buffer_updated(nbytes):
                self._take(frame)
        except FrameError as error:
            self._fail(BrokerUnavailableError(f"{self.address} sent what cannot be read: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(
            BrokerUnavailableError(
                f"The connection to {self.address} is lost: {exc or 'closed by the broker'}"
            )
        )
