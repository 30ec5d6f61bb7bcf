"""The HTTP port of the controls for tests: HTTP/1.1 with JSON bodies, one request at a time per connection.

Every request needs the token in the header Authorization ("Bearer TOKEN"). A request that is malformed or too
large gets an error, and its connection is closed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from barnabas.broker.network.open_port import PortLost, SystemPort, open_port
from barnabas.broker.testing.routes import Answer, Routes
from barnabas.runtime.logging import get_logger
from barnabas.runtime.tasks import Tasks

log = get_logger("testing")

HEADER_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 1024 * 1024

_BACKLOG: Final = 100
"""The most connections that wait to be accepted."""
_REMEDY: Final = "Name another address with --control; port 0 selects a free port"


class _Malformed(Exception):  # noqa: N818  named after its cause
    """The request cannot be read; its connection is closed after an answer with this status."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status


class ControlPort:
    """Listens on one address. `start` once, `close` once."""

    def __init__(self, routes: Routes, token: str) -> None:
        self._routes = routes
        self._token = token
        self._port: SystemPort | None = None
        self.failed: asyncio.Future[PortLost] = asyncio.get_running_loop().create_future()
        """Done if the port accepts no more connections."""
        self._tasks = Tasks()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Opens the port, 0 for a free one, and returns its number; the empty host is every interface.

        Raises OSError.
        """
        self._port = await open_port(host, port, _BACKLOG, _REMEDY)
        self._port.serve(self._connect, self._port_lost, self._note)
        return self._port.number

    async def close(self) -> None:
        """Closes the port and all connections."""
        if self._port is not None:
            self._port.close()
        await self._tasks.cancel()

    def _connect(self) -> asyncio.BaseProtocol:
        reader = asyncio.StreamReader(limit=HEADER_BYTES_MAX)
        return asyncio.StreamReaderProtocol(reader, self._connected)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(self._serve(reader, writer))

    def _port_lost(self, error: PortLost) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    def _note(self, event: str, reason: str) -> None:
        log.warning(event, reason=reason)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # The peer may go away at any time; it then has no use for an answer.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    await self._serve_one(reader, writer)
        except _Malformed as error:
            writer.write(_encoded(Answer(error.status, {"error": error.status.phrase}), closes=True))
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _Malformed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or words[2] != "HTTP/1.1":
            raise _Malformed(HTTPStatus.BAD_REQUEST)
        headers = dict(_header(line) for line in lines)
        if not hmac.compare_digest(
            headers.get("authorization", "").encode(), f"Bearer {self._token}".encode()
        ):
            raise _Malformed(HTTPStatus.UNAUTHORIZED)
        body = await _read_body(reader, headers.get("content-length", "0"))
        writer.write(_encoded(await self._routes.answer(words[0], words[1], body), closes=False))
        await writer.drain()


def _header(line: str) -> tuple[str, str]:
    name, separator, value = line.partition(":")
    if not separator or name.lower() == "transfer-encoding":
        raise _Malformed(HTTPStatus.BAD_REQUEST)
    return name.lower(), value.strip()


async def _read_body(reader: asyncio.StreamReader, length: str) -> bytes:
    if not (length.isascii() and length.isdigit()):
        raise _Malformed(HTTPStatus.BAD_REQUEST)
    if int(length) > BODY_BYTES_MAX:
        raise _Malformed(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return await reader.readexactly(int(length))


def _encoded(answer: Answer, *, closes: bool) -> bytes:
    body = json.dumps(answer.body).encode()
    head = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if closes else []),
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
