"""A network of byte streams inside one loop: delayed, cut, silent, or with a slow reader.

Each connection is two `Pipe`s, one per direction. Bytes arrive in order, each piece with its own delay. `cut`
ends a connection and both ends notice it. After `fall_silent` bytes vanish and no end notices it, as behind a
broken switch. A reader that pauses lets the sender's buffer grow until the sender has to pause. The machine
at the other end may be switched off (`vanish`).

Only the part of asyncio's transports that a broker's connections and the simulated clients use is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from random import Random
from typing import Any, NamedTuple

from tests.simulation.virtual_loop import run_in

_DELAY_MS_MAX = 3.0
_SLOW_CHANCE = 0.02
_SLOW_DELAY_MS_MAX = 60.0
_SPLIT_CHANCE = 0.05
_CONNECT_DELAY_MS_MAX = 2.0
_DEFAULT_BUFFER_BYTES_MAX = 64 * 1024
SOCKET_BYTES = 64 * 1024
"""The limit of the bytes in the systems' buffers, under way or arrived and unread. They are no longer in the
transport's buffer.
"""

Bytes = bytes | bytearray | memoryview


class Pipe:
    """One direction of a connection, from `sender` to the reader at the other end."""

    def __init__(self, network: SimulatedNetwork, sender: SimulatedTransport) -> None:
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._sender = sender
        self._receiver: SimulatedTransport | None = None
        self._under_way: deque[bytes | None] = deque()
        """Data, and None for the end, in the order sent: timers of one moment fire in any order."""
        self._arrived: deque[bytes] = deque()
        self._last_arrival = 0.0
        self._error: Exception | None = None
        self.unread_bytes = 0
        self.is_silent = False

    def lead_to(self, receiver: SimulatedTransport) -> None:
        self._receiver = receiver

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.unread_bytes += len(data)
        if self.is_silent:
            return
        for piece in self._network.split(data):
            self._put_under_way(piece)

    def end(self, error: Exception | None) -> None:
        """Tells the other end, after everything sent, that nothing more will come."""
        if not self.is_silent:
            self._error = error
            self._put_under_way(None)

    def deliver(self) -> None:
        """Passes on the arrived bytes, while the receiver reads."""
        receiver = self._receiver
        while self._arrived and receiver is not None and receiver.reads and not receiver.is_closing():
            data = self._arrived.popleft()
            self.unread_bytes -= len(data)
            receiver.hand_over(data)
            self._sender.note_room()

    def _put_under_way(self, piece: bytes | None) -> None:
        self._under_way.append(piece)
        self._last_arrival = max(self._last_arrival, self._loop.time() + self._network.delay())
        self._loop.call_at(self._last_arrival, self._arrive, context=self._network.context)

    def _arrive(self) -> None:
        piece = self._under_way.popleft()
        if self.is_silent or self._receiver is None:
            return
        if piece is None:
            self._receiver.lose(self._error)
        else:
            self._arrived.append(piece)
            self.deliver()


class SimulatedTransport(asyncio.Transport):
    """One end of a connection. Its protocol is called in the context in which it was created."""

    def __init__(self, network: SimulatedNetwork, addresses: tuple[object, object], context: Context) -> None:
        super().__init__(dict(zip(("sockname", "peername"), addresses, strict=True)))
        self.out = Pipe(network, self)
        self.reads = True
        self.protocol: asyncio.BaseProtocol
        self._network = network
        self._in: Pipe
        self._context = context
        self._buffer_bytes_max = _DEFAULT_BUFFER_BYTES_MAX
        self._is_paused = False
        self._is_closing = False
        self._is_lost = False

    def join(self, peer: SimulatedTransport) -> None:
        """Connects the two ends."""
        self._in, peer._in = peer.out, self.out
        self.out.lead_to(peer)
        peer.out.lead_to(self)

    def begin(self, protocol_factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """Creates the protocol and calls `connection_made`."""
        self._call(self._begin, protocol_factory)

    def _begin(self, protocol_factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self.protocol = protocol_factory()
        self.protocol.connection_made(self)

    # Called by the protocol.

    def write(self, data: Bytes) -> None:
        if self._is_closing or not data:
            return
        self.out.send(bytes(data))
        if self._buffered_bytes > self._buffer_bytes_max and not self._is_paused:
            self._is_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._buffer_bytes_max = _DEFAULT_BUFFER_BYTES_MAX if high is None else high

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True
        self._network.soon(self._in.deliver)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Sends the written bytes, then closes."""
        if not self._is_closing:
            self._is_closing = True
            self.out.end(None)
            self._network.soon(self.lose, None)

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.out.end(ConnectionResetError("the peer has reset the connection"))
            self._network.soon(self.lose, None)

    # Called by the pipes and the network.

    def hand_over(self, data: bytes) -> None:
        self._call(self._hand_over, data)

    def _hand_over(self, data: bytes) -> None:
        protocol = self.protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            rest = memoryview(data)
            while rest and not self._is_closing:
                with memoryview(protocol.get_buffer(len(rest))) as buffer:
                    size = min(len(buffer), len(rest))
                    buffer[:size] = rest[:size]
                    protocol.buffer_updated(size)
                rest = rest[size:]
        elif isinstance(protocol, asyncio.Protocol):
            protocol.data_received(data)

    def note_room(self) -> None:
        """The other end has read."""
        if self._is_paused and self._buffered_bytes <= self._buffer_bytes_max // 4:
            self._is_paused = False
            self._call(self.protocol.resume_writing)

    @property
    def _buffered_bytes(self) -> int:
        """The number of bytes that do not fit into the socket."""
        return max(self.out.unread_bytes - SOCKET_BYTES, 0)

    def lose(self, error: Exception | None) -> None:
        """The connection is gone, and this end notices it; the other end does if it can."""
        if self._is_lost:
            return
        self._is_lost = True
        if not self._is_closing:
            self._is_closing = True
            self.out.end(error)
        self._network.forget(self)
        self._call(self.protocol.connection_lost, error)

    def _call(self, method: Callable[..., object], *args: object) -> None:
        """Calls back in the protocol's process, if that still lives."""
        run_in(self._context, method, *args)


class Link(NamedTuple):
    """A connection, as a fault sees it."""

    client: SimulatedTransport
    server: SimulatedTransport

    def cut(self) -> None:
        """Both ends notice it immediately."""
        for end in self:
            end.lose(ConnectionResetError("the connection was cut"))

    def fall_silent(self) -> None:
        """Bytes sent from now on are lost, and no end notices it."""
        for end in self:
            end.out.is_silent = True

    @property
    def is_silent(self) -> bool:
        """Whether the bytes of one end are lost."""
        return any(end.out.is_silent for end in self)


class Listening:
    """One open port: a broker's, or one with an answering test."""

    def __init__(self, network: SimulatedNetwork, number: int) -> None:
        self.number = number
        self.factory: Callable[[], asyncio.BaseProtocol]
        self.context: Context
        self._network = network

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self.number

    def serve(
        self,
        connect: Callable[[], asyncio.BaseProtocol],
        lost: Callable[[Any], None],
        note: Callable[[str, str], None],
        admit: Any = None,
    ) -> None:
        """Accepts clients, with a protocol in the caller's context."""
        self.factory = connect
        self.context = copy_context()
        self._network.ports[self.number] = self

    def close(self) -> None:
        if self._network.ports.get(self.number) is self:
            del self._network.ports[self.number]


class SimulatedNetwork:
    """All ports and connections of one run. Belongs to no process."""

    def __init__(self, random: Random) -> None:
        self.ports: dict[int, Listening] = {}
        self.context = copy_context()
        self._random = random
        self._loop = asyncio.get_running_loop()
        self._links: dict[SimulatedTransport, Link] = {}
        """Connections by the server's end."""
        self._vanished: list[Link] = []
        """Connections to a machine that has lost its power: their clients may not know."""

    @property
    def now_ms(self) -> float:
        return self._loop.time() * 1000

    @property
    def links(self) -> list[Link]:
        """The open connections, as far as their servers know, oldest first."""
        return list(self._links.values())

    def end_silence(self) -> None:
        """All connections that have fallen silent end, and both ends notice it."""
        for link in self.links:
            if link.is_silent:
                link.cut()
        for link in self._vanished:
            link.client.lose(ConnectionResetError("the machine at the other end started again"))
        self._vanished.clear()

    async def open_port(self, host: str, port: int, backlog: int) -> Listening:
        return Listening(self, port)

    def listen(self, protocol_factory: Callable[[], asyncio.BaseProtocol], port: int) -> Listening:
        """A port that accepts immediately."""
        listening = Listening(self, port)
        listening.serve(protocol_factory, lambda _: None, lambda _event, _reason: None)
        return listening

    async def connect(self, protocol_factory: Callable[[], asyncio.BaseProtocol], port: int) -> Link:
        """Opens a connection to the port from outside; raises ConnectionRefusedError if the port is
        closed.
        """
        await asyncio.sleep(self._random.uniform(0, _CONNECT_DELAY_MS_MAX) / 1000)
        listening = self.ports.get(port)
        if listening is None:
            raise ConnectionRefusedError("the port is closed")
        addresses = ("127.0.0.1", 40_000), listening.getsockname()
        client = SimulatedTransport(self, addresses, self.context)
        server = SimulatedTransport(self, (addresses[1], addresses[0]), listening.context)
        client.join(server)
        link = self._links[server] = Link(client, server)
        server.begin(listening.factory)
        client.begin(protocol_factory)
        return link

    def end_process(self) -> None:
        """The process behind every port was killed: its kernel closes the connections."""
        self.ports.clear()
        for link in self.links:
            self._links.pop(link.server, None)
            link.server.abort()

    def vanish(self) -> None:
        """The machine behind every port has lost its power: clients do not notice it."""
        self.ports.clear()
        for link in self.links:
            link.fall_silent()
        self._vanished += self.links
        self._links.clear()

    # Called by pipes and transports.

    def delay(self) -> float:
        """The delay of one piece of data, in seconds."""
        is_slow = self._random.random() < _SLOW_CHANCE
        return self._random.uniform(0, _SLOW_DELAY_MS_MAX if is_slow else _DELAY_MS_MAX) / 1000

    def split(self, data: bytes) -> tuple[bytes, ...]:
        """The pieces in which the data arrives."""
        if len(data) < 2 or self._random.random() >= _SPLIT_CHANCE:
            return (data,)
        middle = self._random.randrange(1, len(data))
        return data[:middle], data[middle:]

    def soon(self, callback: Callable[..., Any], *args: object) -> None:
        self._loop.call_soon(callback, *args, context=self.context)

    def forget(self, server: SimulatedTransport) -> None:
        self._links.pop(server, None)
