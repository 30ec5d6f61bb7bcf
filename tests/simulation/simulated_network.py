"""A network of byte streams inside one loop: late, cut, silent, or to a reader who takes its time.

Each connection is two `Pipe`s, one per direction. Bytes arrive in order, after a delay of their own, now and
then in pieces. What can be done to a connection: `cut` tells both ends that it is gone; `fall_silent` tells
nobody, and bytes vanish from then on, as behind a broken switch; a reader that pauses lets the sender's
buffer grow until the sender is told to pause. The machine at the other end may be switched off (`vanish`).

Only what a broker's connections and this simulation's clients use of asyncio's transports is there.
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
"""On their way, or arrived and not read, in the systems' buffers: they are none of the transport's."""

Bytes = bytes | bytearray | memoryview


class Pipe:
    """One direction of a connection, from `sender` to whoever reads at the other end."""

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
        """Take bytes on their way."""
        self.unread_bytes += len(data)
        if self.is_silent:
            return
        for piece in self._network.split(data):
            self._put_under_way(piece)

    def end(self, error: Exception | None) -> None:
        """Let the other end know, behind everything sent, that nothing more will come."""
        if not self.is_silent:
            self._error = error
            self._put_under_way(None)

    def deliver(self) -> None:
        """Hand over what has arrived, as far as the receiver reads."""
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
    """One end of a connection. Its protocol is called in the context that it was made in."""

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
        """Make the two the ends of one connection."""
        self._in, peer._in = peer.out, self.out
        self.out.lead_to(peer)
        peer.out.lead_to(self)

    def begin(self, protocol_factory: Callable[[], asyncio.BaseProtocol]) -> None:
        """Make the protocol and tell it."""
        self._call(self._begin, protocol_factory)

    def _begin(self, protocol_factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self.protocol = protocol_factory()
        self.protocol.connection_made(self)

    # What a protocol calls.

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
        """Send what was written, then end."""
        if not self._is_closing:
            self._is_closing = True
            self.out.end(None)
            self._network.soon(self.lose, None)

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.out.end(ConnectionResetError("the peer has reset the connection"))
            self._network.soon(self.lose, None)

    # What the pipes and the network call.

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
        """What doesn't fit into the socket."""
        return max(self.out.unread_bytes - SOCKET_BYTES, 0)

    def lose(self, error: Exception | None) -> None:
        """The connection is gone, and this end knows; the other one hears of it if it can."""
        if self._is_lost:
            return
        self._is_lost = True
        if not self._is_closing:
            self._is_closing = True
            self.out.end(error)
        self._network.forget(self)
        self._call(self.protocol.connection_lost, error)

    def _call(self, method: Callable[..., object], *args: object) -> None:
        """Have the protocol's process do it, if that still lives."""
        run_in(self._context, method, *args)


class Link(NamedTuple):
    """A connection as the one who disturbs it sees it."""

    client: SimulatedTransport
    server: SimulatedTransport

    def cut(self) -> None:
        """Both ends hear of it at once."""
        for end in self:
            end.lose(ConnectionResetError("the connection was cut"))

    def fall_silent(self) -> None:
        """Whatever is sent from now on is lost, and neither end is told."""
        for end in self:
            end.out.is_silent = True


class Listening:
    """One open port: a broker's, or one that a test answers at."""

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
    ) -> None:
        """Let clients connect, to a protocol in the context of the one who calls this."""
        self.factory = connect
        self.context = copy_context()
        self._network.ports[self.number] = self

    def close(self) -> None:
        if self._network.ports.get(self.number) is self:
            del self._network.ports[self.number]


class SimulatedNetwork:
    """All ports and connections of one run. Made outside of all processes."""

    def __init__(self, random: Random) -> None:
        self.ports: dict[int, Listening] = {}
        self.context = copy_context()
        self._random = random
        self._loop = asyncio.get_running_loop()
        self._links: dict[SimulatedTransport, Link] = {}
        """By the end at the server."""

    @property
    def now_ms(self) -> float:
        return self._loop.time() * 1000

    @property
    def links(self) -> list[Link]:
        """The connections that are up, as far as their servers know, oldest first."""
        return list(self._links.values())

    async def open_port(self, host: str, port: int, backlog: int) -> Listening:
        return Listening(self, port)

    def listen(self, protocol_factory: Callable[[], asyncio.BaseProtocol], port: int) -> Listening:
        """A port that accepts at once."""
        listening = Listening(self, port)
        listening.serve(protocol_factory, lambda _: None, lambda _event, _reason: None)
        return listening

    async def connect(self, protocol_factory: Callable[[], asyncio.BaseProtocol], port: int) -> Link:
        """A connection from the outside to the port; raises ConnectionRefusedError if nobody listens."""
        await asyncio.sleep(self._random.uniform(0, _CONNECT_DELAY_MS_MAX) / 1000)
        listening = self.ports.get(port)
        if listening is None:
            raise ConnectionRefusedError("nobody listens")
        addresses = ("127.0.0.1", 40_000), listening.getsockname()
        client = SimulatedTransport(self, addresses, self.context)
        server = SimulatedTransport(self, (addresses[1], addresses[0]), listening.context)
        client.join(server)
        link = self._links[server] = Link(client, server)
        server.begin(listening.factory)
        client.begin(protocol_factory)
        return link

    def end_process(self) -> None:
        """The process behind every port was killed: its kernel closes what it had open."""
        self.ports.clear()
        for link in self.links:
            self._links.pop(link.server, None)
            link.server.abort()

    def vanish(self) -> None:
        """The machine behind every port has lost its power: nobody tells the clients."""
        self.ports.clear()
        for link in self.links:
            link.fall_silent()
        self._links.clear()

    # What pipes and transports call.

    def delay(self) -> float:
        """Of one piece of data, in seconds."""
        is_slow = self._random.random() < _SLOW_CHANCE
        return self._random.uniform(0, _SLOW_DELAY_MS_MAX if is_slow else _DELAY_MS_MAX) / 1000

    def split(self, data: bytes) -> tuple[bytes, ...]:
        """The pieces that the data arrives in."""
        if len(data) < 2 or self._random.random() >= _SPLIT_CHANCE:
            return (data,)
        middle = self._random.randrange(1, len(data))
        return data[:middle], data[middle:]

    def soon(self, callback: Callable[..., Any], *args: object) -> None:
        self._loop.call_soon(callback, *args, context=self.context)

    def forget(self, server: SimulatedTransport) -> None:
        self._links.pop(server, None)
