"""A port of this machine that is listened on: its sockets, and how connections are accepted from them.

Accepting never stops because of an exception. `loop.create_server` is not used for that reason: after any
exception between the system's queue and the finished transport, such as a MemoryError, uvloop accepts nothing
more, without an end of the process. Here each accepted connection fails alone, and is closed. If the system
itself refuses (no descriptor, no memory), accepting pauses for `PAUSE_SECONDS`; clients wait in the system's
queue meanwhile. Only a socket that no longer works ends the port; its owner is told then.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

ACCEPTED_AT_ONCE_MAX: Final = 16
"""Connections accepted from one socket before others have their turn."""

PAUSE_SECONDS: Final = 0.1
"""Pause after the system could not accept a connection."""

_BROKEN = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})
"""Errors of accept(2) which mean that the socket will never accept again."""

_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""Errors of one address, such as that of IPv6 where there is none, which do no harm if another one works."""

_REMEDY = "Name another address with --listen; port 0 takes one that is free"

Connect = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of a new connection."""


Note = Callable[[str, str], None]
"""Logs an event with its reason."""


class PortLost(Exception):  # noqa: N818  it is named after its event, like those of the storage
    """A port accepts no connections any more, though it was not closed."""


class Port(Protocol):
    """A port that is listened on, here or in a simulated network."""

    @property
    def number(self) -> int:
        """Never 0: the one that the system picked, if it was to pick one."""
        ...

    def serve(self, connect: Connect, lost: Callable[[PortLost], None], note: Note) -> None:
        """Accept connections from now on. `lost` is called if that ends before `close`, `note` with what
        keeps connections from being accepted.
        """
        ...

    def close(self) -> None: ...


async def open_port(host: str, number: int, backlog: int) -> "SystemPort":
    """Listens at every address of `host` (all interfaces if it is empty); `number` 0 has one picked.

    Raises OSError, and leaves nothing open then.
    """
    found = await _addresses(host, number)
    sockets: list[socket.socket] = []
    refusal: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        picked = sockets[0].getsockname()[1] if sockets else number
        try:
            sockets.append(_listen(family, kind, protocol, (address[0], picked, *address[2:]), backlog))
        except OSError as error:
            refusal = error
            if error.errno not in _NO_SUCH_FAMILY:
                break
    if refusal is not None and (not sockets or refusal.errno not in _NO_SUCH_FAMILY):
        for opened in sockets:
            opened.close()
        raise refusal
    return SystemPort(sockets)


async def _addresses(host: str, number: int) -> list[Any]:
    loop, kind = asyncio.get_running_loop(), socket.SOCK_STREAM
    try:
        return await loop.getaddrinfo(host or None, number, type=kind, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(error.errno, f"the host {host} cannot be found: {reason}. {_REMEDY}") from None


def _listen(family: int, kind: int, protocol: int, address: tuple[Any, ...], backlog: int) -> socket.socket:
    """One socket that listens; raises OSError that names the address."""
    try:
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _at(address, error) from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        opened.listen(backlog)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise _at(address, error) from None
    return opened


def _at(address: tuple[Any, ...], error: OSError) -> OSError:
    reason = (error.strerror or str(error)).lower()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return OSError(error.errno, f"{host}:{address[1]} cannot be listened on: {reason}. {_REMEDY}")


class SystemPort:
    """A port of the operating system; to be used on the loop's thread."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        """`sockets` listen already, all at the same port of different addresses."""
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._attaching: set[asyncio.Task[None]] = set()
        """Accepted connections that have no transport yet."""
        self._connect: Connect
        self._lost: Callable[[PortLost], None]
        self._note: Note

    @property
    def number(self) -> int:
        number: int = self._sockets[0].getsockname()[1]
        return number

    def serve(self, connect: Connect, lost: Callable[[PortLost], None], note: Note) -> None:
        self._connect = connect
        self._lost = lost
        self._note = note
        for listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accepts nothing more; connections in the system's queue are reset."""
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets = []

    def _accept(self, listening: socket.socket) -> None:
        """Called whenever a connection waits, so also again after it has raised something."""
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except Exception as error:
                self._cannot_accept(listening, error)
                return
            self._begin(accepted)

    def _begin(self, accepted: socket.socket) -> None:
        """Whatever happens to this connection happens to no other."""
        try:
            accepted.setblocking(False)
            attaching = self._loop.create_task(self._attach(self._connect(), accepted))
            self._attaching.add(attaching)
            attaching.add_done_callback(self._attaching.discard)
        except Exception as error:
            accepted.close()
            self._report("connection not accepted", error)

    async def _attach(self, protocol: asyncio.BaseProtocol, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, accepted)
        except Exception as error:
            # The transport may have closed the descriptor, which can be another file's by now: only a
            # connection is shut down by this, and no file is closed.
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
            accepted.detach()
            self._report("connection not accepted", error)

    def _cannot_accept(self, listening: socket.socket, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in _BROKEN:
            self._end(error)
            return
        # In this order: if no timer can be had, the socket is still watched.
        self._loop.call_later(PAUSE_SECONDS, self._resume, listening)
        self._loop.remove_reader(listening)
        self._report("accepting pauses", error)

    def _resume(self, listening: socket.socket) -> None:
        if listening not in self._sockets:
            return
        try:
            self._loop.add_reader(listening, self._accept, listening)
        except Exception as error:
            self._end(error)

    def _end(self, error: Exception) -> None:
        number = self.number
        self.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        self._lost(PortLost(f"The listener on port {number} failed, so the broker ended: {reason}."))

    def _report(self, event: str, error: Exception) -> None:
        """To log takes memory, too: without any the connection is all that is lost."""
        with suppress(MemoryError):
            self._note(event, str(error) or type(error).__name__)
