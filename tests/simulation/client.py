"""A client of the simulated network that speaks Kafka's protocol: real frames through a broker's real port.

It sends one request at a time or several. Each has a timeout, after which the client drops its connection, as
Kafka's clients do. The client cannot know whether such a request took effect.
"""

from __future__ import annotations

import asyncio
import struct
from itertools import count
from typing import Any

from barnabas.protocol.api import APIS
from tests.conformance.messages import encoded, message, message_type, read
from tests.simulation.machine import PORT
from tests.simulation.simulated_network import Link, SimulatedNetwork

REQUEST_TIMEOUT_SECONDS = 4.0
_API_KEYS = {spec.name: key for key, spec in APIS.items()}


class Disconnected(Exception):  # noqa: N818  named as the condition
    """The connection is gone, and the request with it: answered, executed or not."""


class Pending:
    """A request under way; `future` is its response."""

    def __init__(self, api: str, version: int, sent_ms: float) -> None:
        self.api = api
        self.version = version
        self.sent_ms = sent_ms
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, frame: bytes) -> None:
        """Takes the response out of its frame, without the length."""
        flexible = self.version >= APIS[_API_KEYS[self.api]].flexible_version
        body = frame[5 if flexible and self.api != "api_versions" else 4 :]
        if not self.future.done():
            self.future.set_result(read(message_type(self.api, self.version, "response"), body))


class _Answers(asyncio.Protocol):
    """The client's end of one connection."""

    def __init__(self) -> None:
        self.pending: dict[int, Pending] = {}
        self.lost = False
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (length,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + length:
                return
            frame, self._received = self._received[4 : 4 + length], self._received[4 + length :]
            (correlation_id,) = struct.unpack_from(">i", frame)
            self.pending.pop(correlation_id).answer(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        for pending in self.pending.values():
            if not pending.future.done():
                pending.future.set_exception(Disconnected())
        self.pending.clear()


class SimulatedClient:
    """One client with one connection, which is opened again when it is needed."""

    def __init__(self, network: SimulatedNetwork, client_id: str) -> None:
        self.client_id = client_id
        self.link: Link | None = None
        """The open connection, as far as this client knows."""
        self._network = network
        self._answers: _Answers | None = None
        self._correlation_ids = count(1)

    @property
    def is_connected(self) -> bool:
        return self._answers is not None and not self._answers.lost

    async def connect(self) -> Link:
        """Connects if there is no connection. Raises `Disconnected` if the port is closed."""
        if self.link is None or not self.is_connected:
            answers = _Answers()
            try:
                self.link = await self._network.connect(lambda: answers, PORT)
            except ConnectionRefusedError:
                raise Disconnected from None
            self._answers = answers
        return self.link

    def send(self, api: str, version: int | None = None, **values: Any) -> Pending:
        """Sends a request over the open connection, with the fields that `messages.message` accepts."""
        version = APIS[_API_KEYS[api]].max_version if version is None else version
        return self.send_body(api, version, encoded(message(message_type(api, version, "request"), values)))

    def send_body(self, api: str, version: int, body: bytes) -> Pending:
        """Sends an encoded request over the open connection."""
        answers = self._answers
        if self.link is None or answers is None or answers.lost:
            raise Disconnected
        key = _API_KEYS[api]
        correlation_id = next(self._correlation_ids)
        client_id = self.client_id.encode()
        header = struct.pack(">hhih", key, version, correlation_id, len(client_id)) + client_id
        if version >= APIS[key].flexible_version:
            header += b"\0"
        frame = header + body
        pending = Pending(api, version, self._network.now_ms)
        answers.pending[correlation_id] = pending
        self.link.client.write(struct.pack(">i", len(frame)) + frame)
        return pending

    async def answered(self, pending: Pending, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS) -> Any:
        """The response. Raises `Disconnected`, also if it is late."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await pending.future
        except TimeoutError:
            self.disconnect()
            raise Disconnected from None

    async def ask(self, api: str, version: int | None = None, **values: Any) -> Any:
        """The response of a request; connects first if necessary."""
        await self.connect()
        return await self.answered(self.send(api, version, **values))

    def disconnect(self) -> None:
        """Drops the connection without sending anything."""
        if self.link is not None:
            self.link.client.abort()
        self.link = self._answers = None
