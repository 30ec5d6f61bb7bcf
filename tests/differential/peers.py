"""Brokers to play a history on: one at an address, and one in this process under a virtual clock."""

from __future__ import annotations

import asyncio
import struct
from itertools import count
from typing import Any, NamedTuple, Protocol

from barnabas.broker.network.dispatch import Answer, PendingAnswer
from barnabas.protocol.errors import FrameError
from tests.conformance.harness import Client, Lab, settle
from tests.differential.wire import Asked, decode, encode

_ANSWER_SECONDS = 60.0
_SETTLING_SECONDS = 0.05
"""Kafka's coordinators know their last writes some 10 ms later."""
_LENGTH_BYTES = 4
_LAB_STEP_MS = 50
_LAB_STEPS_MAX = 1_200


class ConnectionEndedError(Exception):
    """The broker closed the connection instead of an answer."""


class Connection(Protocol):
    """One client's connection; answers come in the order of the requests."""

    def send(self, api: str, version: int, values: dict[str, Any]) -> Any: ...

    def is_answered(self, pending: Any) -> bool:
        """Whether `answer` would return immediately."""
        ...

    async def answer(self, pending: Any) -> Any:
        """The response, decoded by kio; raises ConnectionEndedError or TimeoutError."""
        ...

    def close(self) -> None: ...


class Peer(Protocol):
    """A broker that runs."""

    async def connect(self, client_id: str) -> Connection: ...

    async def settle(self) -> None:
        """Let everything finish that does not wait for time."""
        ...

    async def elapse(self, ms: int) -> None:
        """Let time pass."""
        ...


class SocketConnection:
    """A connection to an address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_ids = count(1)
        self._turn = asyncio.Lock()
        self._reading: set[asyncio.Task[Any]] = set()

    def send(self, api: str, version: int, values: dict[str, Any]) -> asyncio.Task[Any]:
        frame = encode(api, version, next(self._correlation_ids), self._client_id, values)
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        task = asyncio.ensure_future(self._read(Asked(api, version)))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
        return task

    def is_answered(self, pending: asyncio.Task[Any]) -> bool:
        return pending.done()

    async def answer(self, pending: asyncio.Task[Any]) -> Any:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await pending

    async def _read(self, asked: Asked) -> Any:
        async with self._turn:
            try:
                (length,) = struct.unpack(">i", await self._reader.readexactly(4))
                frame = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise ConnectionEndedError from error
        return decode(asked, frame)

    def close(self) -> None:
        for task in self._reading:
            task.cancel()
        self._writer.close()


class SocketPeer:
    """A broker at an address."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def connect(self, client_id: str) -> SocketConnection:
        host, _, port = self.address.rpartition(":")
        return SocketConnection(*await asyncio.open_connection(host, int(port)), client_id)

    async def settle(self) -> None:
        await asyncio.sleep(_SETTLING_SECONDS)

    async def elapse(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)


class _Sent(NamedTuple):
    """A request to a lab's broker, and its answer as soon as it exists; both None if the request was
    refused.
    """

    asked: Asked
    answer: Answer | None = None
    pending: PendingAnswer | None = None
    reply: asyncio.Future[Any] | None = None


class LabConnection:
    """A connection to a lab's broker."""

    def __init__(self, lab: Lab, client: Client) -> None:
        self._lab = lab
        self._client = client
        self._client_id = client.client_id
        self._correlation_ids = count(1)
        self._is_ended = False

    def send(self, api: str, version: int, values: dict[str, Any]) -> _Sent:
        asked = Asked(api, version)
        frame = encode(api, version, next(self._correlation_ids), self._client_id, values)
        if self._is_ended:
            return _Sent(asked)
        try:
            started = self._lab.dispatcher.start(self._client.connection, frame)
        except FrameError:
            self._is_ended = True
            return _Sent(asked)
        if isinstance(started, PendingAnswer):
            return _Sent(asked, pending=started, reply=asyncio.ensure_future(started.reply))
        return _Sent(asked, answer=started)

    def is_answered(self, pending: _Sent) -> bool:
        return pending.reply is None or pending.reply.done()

    async def answer(self, pending: _Sent) -> Any:
        asked, answer, waiting, reply = pending
        if waiting is not None and reply is not None:
            answer = self._lab.dispatcher.answer(waiting, await self._awaited(reply))
        if answer is None:
            raise ConnectionEndedError
        return decode(asked, b"".join(answer.buffers)[_LENGTH_BYTES:])

    async def _awaited(self, reply: asyncio.Future[Any]) -> Any:
        await settle()
        for _ in range(_LAB_STEPS_MAX):
            if reply.done():
                return reply.result()
            await self._lab.advance(_LAB_STEP_MS)
        raise TimeoutError

    def close(self) -> None:
        if not self._client.connection.closed:
            self._client.disconnect()


class LabPeer:
    """A lab's broker; time passes as fast as the machine computes."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    async def connect(self, client_id: str) -> LabConnection:
        return LabConnection(self._lab, self._lab.client(client_id))

    async def settle(self) -> None:
        await self._lab.advance(0)

    async def elapse(self, ms: int) -> None:
        await self._lab.advance(ms)
