"""A proxy between clients and a broker that drops bytes and cuts connections on command."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from barnabas.protocol.header import decode_request_header


class SeenRequest(NamedTuple):
    """A request that passed the proxy; `connection` is the number of its connection."""

    connection: int
    correlation_id: int
    api_key: int
    version: int
    body: bytes


class CuttingProxy:
    """Forwards every connection to the broker, whose `advertised.listeners` must be the proxy's address."""

    def __init__(self, broker_port: int) -> None:
        self.requests: list[SeenRequest] = []
        """All requests that clients have sent, in their order."""
        self.answered: set[tuple[int, int]] = set()
        """Connection and correlation id of each answer of the broker, also of those that were dropped."""
        self.drops_answers = False
        """Whether the broker's bytes are dropped."""
        self._broker_port = broker_port
        self._writers: set[asyncio.StreamWriter] = set()
        self._connection_count = 0

    def cut(self) -> None:
        """Cut all connections; both ends notice. Answers of later connections arrive."""
        self.drops_answers = False
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        self._connection_count += 1
        number = self._connection_count
        to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        ends = {writer, to_broker[1]}
        self._writers |= ends
        try:
            async with asyncio.TaskGroup() as forwarding:
                forwarding.create_task(self._forward_requests(number, reader, to_broker[1]))
                forwarding.create_task(self._forward_answers(number, to_broker[0], writer))
        except* (ConnectionError, asyncio.IncompleteReadError):
            pass  # one end has closed the connection
        for end in ends:
            end.transport.abort()
        self._writers -= ends

    async def _forward_requests(
        self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            size, frame = await _read_frame(reader)
            header = decode_request_header(frame)
            body = frame[header.body_offset :]
            self.requests.append(
                SeenRequest(connection, header.correlation_id, header.api_key, header.api_version, body)
            )
            writer.write(size + frame)
            await writer.drain()

    async def _forward_answers(
        self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            size, frame = await _read_frame(reader)
            self.answered.add((connection, *struct.unpack_from(">i", frame)))
            if not self.drops_answers:
                writer.write(size + frame)
                await writer.drain()


async def _read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    size = await reader.readexactly(4)
    return size, await reader.readexactly(*struct.unpack(">i", size))


@asynccontextmanager
async def proxy_before(broker_port: int, port: int) -> AsyncGenerator[CuttingProxy]:
    """A proxy on `port` of the local host."""
    proxy = CuttingProxy(broker_port)
    serving: list[asyncio.Task[None]] = []

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(proxy.serve(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await asyncio.gather(*serving)
