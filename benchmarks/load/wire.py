"""One connection of a client under load: requests are sent immediately, and answered in order."""

import asyncio
import struct
from collections import deque
from typing import Any, Self, cast

from tests.conformance.messages import message, message_type, read, written

from barnabas.protocol.api import APIS

BODY_OFFSET = 9
"""The start of the body in a frame of a flexible version: after its length, correlation id and tags."""

_LENGTH = struct.Struct(">i")
_CLIENT_ID = b"load"
_HEADER = struct.Struct(f">ihhih{len(_CLIENT_ID)}sb")
"""The frame's length and a flexible version's header without tagged fields."""
_KEYS = {spec.name: spec.key for spec in APIS.values()}


class Connection(asyncio.Protocol):
    """Created by `open`. Flexible versions only. The correlation id is always 0."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._asked: deque[asyncio.Future[bytes]] = deque()

    @classmethod
    async def open(cls, address: str) -> Self:
        host, _, port = address.rpartition(":")
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, int(port))
        return connection

    async def ask(self, api: str, version: int, **values: Any) -> Any:
        """The answer to a rare request, which kio encodes; `api` is a name such as `share_fetch`."""
        body = written(message(message_type(api, version, "request"), values))
        frame = await self.send(framed(_KEYS[api], version, body))
        return read(message_type(api, version, "response"), frame[BODY_OFFSET:])

    def send(self, frame: bytes) -> asyncio.Future[bytes]:
        """Send a request's whole frame; the future gets the answer, or ConnectionError if it is lost."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if self._transport is None:
            answer.set_exception(ConnectionError("not connected"))
            return answer
        self._asked.append(answer)
        self._transport.write(frame)
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No assert: not all of uvloop's transports are subclasses.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._received and len(data) == _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            self._answer(data)
            return
        self._received += data
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            self._answer(bytes(self._received[:end]))
            del self._received[:end]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(ConnectionError(f"the connection was lost: {exc}"))

    def _answer(self, frame: bytes) -> None:
        answer = self._asked.popleft()
        if not answer.done():
            answer.set_result(frame)


def framed(api_key: int, version: int, body: bytes) -> bytes:
    """The frame of a request of a flexible version."""
    length = _HEADER.size - _LENGTH.size + len(body)
    return _HEADER.pack(length, api_key, version, 0, len(_CLIENT_ID), _CLIENT_ID, 0) + body
