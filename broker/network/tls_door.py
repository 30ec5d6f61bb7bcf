"""The door of a TLS listener: decides when the handshake of a connection begins.

A handshake takes the loop a millisecond or more, because the server signs with its private key, and everyone
who reaches the port can ask for one. So a connection first waits until its whole first message (ClientHello)
has arrived, which costs the broker a descriptor and nothing else. Then it waits for its turn: all handshakes
together get a share of the loop's time, and a number per second. Others wait in the order of their arrival,
and open connections do not notice.

At most `connections_max` are at the door or in a handshake, and no more than the broker has room for. Beyond
that, the one that has been silent for longest gives way to a new one, so that silent clients keep nobody out.
A client can make a second step costly by a first message that the server cannot use; such handshakes end when
they have taken too much.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.network.peer_address import written_address
from barnabas.broker.security.tls import ServerTls

_RECORD_HEADER_BYTES: Final = 5
_HEADERS_BYTES: Final = _RECORD_HEADER_BYTES + 4
"""The headers of a record and of the message in it."""
_HANDSHAKE_RECORD: Final = 0x16
_HELLO_BYTES_MAX: Final = _RECORD_HEADER_BYTES + 2**14
"""The largest record of TLS (RFC 8446, section 5.1)."""

_BURST_SECONDS: Final = 0.05
"""The time of the loop that handshakes may take at once after a pause."""

_SHORTEST_WAIT_SECONDS: Final = 0.001

_SHUTDOWN_SECONDS: Final = 1.0
"""How long a closed connection waits for the client's farewell."""

Connect = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of a new connection."""

Note = Callable[[str, str], None]
"""Called with the address of a client whose handshake has failed, and the reason."""


class HandshakeLimits(NamedTuple):
    """The bounds of all handshakes of one broker."""

    timeout_seconds: float = 10.0
    """For the first message, and again for the rest of the handshake."""
    loop_share: float = 0.25
    """The part of the loop's time that they may take together."""
    per_second_max: int = 1000
    connections_max: int = 1000
    """The most connections whose handshake has not ended."""


class HandshakeBudget:
    """The time that handshakes may take now, and their number. Times are monotonic, in seconds."""

    def __init__(self, limits: HandshakeLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._refilled = now()
        self._seconds = _BURST_SECONDS
        self._count = 1.0

    def spend(self, seconds: float) -> None:
        """A handshake has taken so much of the loop's time."""
        self._seconds -= seconds

    @property
    def is_overdrawn(self) -> bool:
        """Whether far more time was taken than was granted, by clients that make a second step costly."""
        return self._seconds < -_BURST_SECONDS

    def begin(self) -> float:
        """Begins a handshake and returns 0, or returns after how many seconds one may begin."""
        now, share, rate = self._now(), self._limits.loop_share, self._limits.per_second_max
        passed, self._refilled = now - self._refilled, now
        self._seconds = min(self._seconds + passed * share, _BURST_SECONDS)
        self._count = min(self._count + passed * rate, max(rate * _BURST_SECONDS, 1.0))
        if self._seconds > 0 and self._count >= 1:
            self._count -= 1
            return 0.0
        return max(-self._seconds / share, (1 - self._count) / rate, _SHORTEST_WAIT_SECONDS)


class TlsDoor:
    """Admits connections to the listeners with TLS of one broker."""

    def __init__(self, limits: HandshakeLimits, failed: Note, room: Callable[[], int]) -> None:
        """`room` returns how many further connections the broker can have."""
        self._limits = limits
        self._room = room
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._budget = HandshakeBudget(limits, self._loop.time)
        self._silent: dict[asyncio.Task[None], str] = {}
        """Those that wait for their client, the longest first, with its address: for the first message, or
        for the rest of the handshake.
        """
        self._order = asyncio.Lock()
        """Held by the connection whose turn it is, until the costly step of its handshake is done."""
        self._turn: asyncio.Task[None] | None = None
        self.connection_count = 0
        """Those whose handshake has not ended."""

    async def admit(self, tls: ServerTls, connect: Connect, accepted: socket.socket) -> None:
        """Does the handshake of an accepted connection, and begins it. If that fails, it is closed."""
        client = written_address(_peer_of(accepted))
        connections_max = min(self._limits.connections_max, self._room())
        if self.connection_count >= connections_max and not self._make_room():
            accepted.close()
            self._failed(client, "too many connections (max.connections, ssl.handshakes.max)")
            return
        self.connection_count += 1
        task = asyncio.current_task()
        assert task is not None
        try:
            self._silent[task] = client
            await self._whole_hello(accepted)
            del self._silent[task]
            await self._shake_hands(tls, connect, accepted, task, client)
        except (OSError, TimeoutError) as error:
            accepted.close()
            self._failed(client, _reason(error))
        except asyncio.CancelledError:
            accepted.close()
            raise
        finally:
            self._silent.pop(task, None)
            self.connection_count -= 1

    def _make_room(self) -> bool:
        """Closes the connection that has been silent for longest. False if none is silent."""
        if not self._silent:
            return False
        longest, client = next(iter(self._silent.items()))
        del self._silent[longest]
        longest.cancel()
        self._failed(client, "the client was silent while others arrived")
        return True

    def close(self) -> None:
        """Close all connections that have not begun their handshake."""
        for task in self._silent:
            task.cancel()

    async def _whole_hello(self, accepted: socket.socket) -> None:
        """Returns once the first message has arrived completely; it stays in the system's buffer.

        It must be one record, as every client sends it: the server would sign at a later step otherwise.
        """
        try:
            async with asyncio.timeout(self._limits.timeout_seconds):
                headers = await self._peek(accepted, _HEADERS_BYTES)
                record_bytes = int.from_bytes(headers[3:_RECORD_HEADER_BYTES])
                message_bytes = int.from_bytes(headers[_RECORD_HEADER_BYTES + 1 :])
                if headers[0] != _HANDSHAKE_RECORD:
                    raise ConnectionAbortedError("the client does not speak TLS")
                if record_bytes < message_bytes + 4:
                    raise ConnectionAbortedError("the first message of the client is in pieces")
                await self._peek(accepted, min(_RECORD_HEADER_BYTES + record_bytes, _HELLO_BYTES_MAX))
        finally:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    async def _peek(self, accepted: socket.socket, count: int) -> bytes:
        """The first `count` received bytes, once they are there. The system wakes the loop only then."""
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
        readable = self._loop.create_future()
        self._loop.add_reader(accepted, _set_done, readable)
        try:
            await readable
        finally:
            self._loop.remove_reader(accepted)
        received = accepted.recv(count, socket.MSG_PEEK)
        if len(received) < count:
            raise ConnectionAbortedError("the client has closed the connection")
        return received

    async def _shake_hands(
        self,
        tls: ServerTls,
        connect: Connect,
        accepted: socket.socket,
        task: asyncio.Task[None],
        client: str,
    ) -> None:
        async with asyncio.timeout(self._limits.timeout_seconds):
            await self._order.acquire()
        self._turn = task
        try:
            while wait_seconds := self._budget.begin():  # noqa: ASYNC110  only time can help
                await asyncio.sleep(wait_seconds)
            tls.context.on_step = self._step_done
            tls.context.is_overdrawn = self._is_overdrawn
            self._silent[task] = client
            await self._loop.connect_accepted_socket(
                connect,
                accepted,
                ssl=tls.context,
                ssl_handshake_timeout=self._limits.timeout_seconds,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            )
        finally:
            if self._turn is task:
                self._end_turn()

    def _is_overdrawn(self) -> bool:
        return self._budget.is_overdrawn

    def _step_done(self, seconds: float, signs: bool) -> None:
        """Called after each step of any handshake."""
        self._budget.spend(seconds)
        if signs and self._turn is not None:
            self._end_turn()

    def _end_turn(self) -> None:
        self._turn = None
        self._order.release()


def _set_done(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def _peer_of(accepted: socket.socket) -> tuple[object, ...] | None:
    try:
        peer: tuple[object, ...] = accepted.getpeername()
    except OSError:  # the client is gone already
        return None
    return peer


def _reason(error: OSError | TimeoutError) -> str:
    """Why the handshake failed, as OpenSSL names it."""
    if isinstance(error, TimeoutError) or "handshake is taking longer" in str(error):
        return "the client has not ended its handshake in time (ssl.handshake.timeout.ms)"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the client has closed the connection"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error) or type(error).__name__
