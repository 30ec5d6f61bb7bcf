"""A port of this machine: opens its listening sockets, and accepts connections.

Accepting never stops because of an exception. `loop.create_server` cannot be used for that reason: after an
exception between the system's queue and the finished transport, such as a MemoryError, uvloop accepts no
further connection, and the process continues. Here only the accepted connection fails, and is closed. If the
system refuses (no descriptor, no memory), accepting pauses for `PAUSE_SECONDS`; clients wait in the system's
queue. Only a broken socket ends the port; then `lost` is called.
"""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Protocol

ACCEPTED_AT_ONCE_MAX: Final = 16
"""The most connections that are accepted from one socket before other work runs."""

PAUSE_SECONDS: Final = 0.1
"""The pause after the system could not accept a connection."""

_BROKEN = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})
"""Errors of accept(2) after which the socket will never accept again."""

_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""Errors of one address that are ignored if another address works, such as IPv6 on a machine without it."""

_REMEDY = "Name another address with --listen; port 0 selects a free port"

Connect = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of a new connection."""

Admit = Callable[[Connect, socket.socket], Awaitable[None]]
"""Begins an accepted connection with its protocol. It closes the socket if that fails for the client's
reasons; an exception is reported as the broker's.
"""

Note = Callable[[str, str], None]
"""Logs an event with its reason."""


class PortLost(Exception):  # noqa: N818  named after its event, like those of the storage
    """A port accepts no more connections, although it was not closed."""


class Port(Protocol):
    """A listening port, of this machine or of a simulated network."""

    @property
    def number(self) -> int:
        """The actual port, never 0."""
        ...

    def serve(
        self,
        connect: Connect,
        lost: Callable[[PortLost], None],
        note: Note,
        admit: Admit | None = None,
    ) -> None:
        """Accept connections from now on. If that ends before `close`, `lost` is called. `note` is called
        with the reason if a connection cannot be accepted. `admit` begins each connection; by default it
        begins at once.
        """
        ...

    def close(self) -> None: ...


async def open_port(host: str, number: int, backlog: int, remedy: str = _REMEDY) -> "SystemPort":
    """Listens at every address of `host` (all interfaces if it is empty); with `number` 0 the system selects
    the port. Raises OSError that ends with the remedy, and then leaves no socket open.
    """
    found = await _addresses(host, number, remedy)
    sockets: list[socket.socket] = []
    refusal: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        picked = sockets[0].getsockname()[1] if sockets else number
        try:
            sockets.append(
                _listen(family, kind, protocol, (address[0], picked, *address[2:]), backlog, remedy)
            )
        except OSError as error:
            refusal = error
            if error.errno not in _NO_SUCH_FAMILY:
                break
    if refusal is not None and (not sockets or refusal.errno not in _NO_SUCH_FAMILY):
        for opened in sockets:
            opened.close()
        raise refusal
    return SystemPort(sockets)


async def _addresses(host: str, number: int, remedy: str) -> list[Any]:
    loop, kind = asyncio.get_running_loop(), socket.SOCK_STREAM
    try:
        return await loop.getaddrinfo(host or None, number, type=kind, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(error.errno, f"the host {host} cannot be found: {reason}. {remedy}") from None


def _listen(
    family: int, kind: int, protocol: int, address: tuple[Any, ...], backlog: int, remedy: str
) -> socket.socket:
    """A listening socket. Raises OSError that names the address."""
    try:
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _at(address, error, remedy) from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        opened.listen(backlog)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise _at(address, error, remedy) from None
    return opened


def _at(address: tuple[Any, ...], error: OSError, remedy: str) -> OSError:
    reason = (error.strerror or str(error)).lower()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return OSError(error.errno, f"{host}:{address[1]} cannot be listened on: {reason}. {remedy}")


class SystemPort:
    """A port of the operating system; used on the loop's thread only."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        """`sockets` already listen, all at the same port of different addresses."""
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._attaching: set[asyncio.Task[None]] = set()
        """Accepted connections without a transport."""
        self._connect: Connect
        self._admit: Admit = self._begin_at_once
        self._lost: Callable[[PortLost], None]
        self._note: Note

    @property
    def number(self) -> int:
        number: int = self._sockets[0].getsockname()[1]
        return number

    def serve(
        self,
        connect: Connect,
        lost: Callable[[PortLost], None],
        note: Note,
        admit: Admit | None = None,
    ) -> None:
        self._connect = connect
        self._admit = admit or self._begin_at_once
        self._lost = lost
        self._note = note
        for listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accept no more connections; those in the system's queue are reset."""
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets = []

    def _accept(self, listening: socket.socket) -> None:
        """Called whenever a connection waits, so also again after an exception."""
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
        """Begin one connection; an error closes only this one."""
        try:
            accepted.setblocking(False)
            attaching = self._loop.create_task(self._attach(accepted))
            self._attaching.add(attaching)
            attaching.add_done_callback(self._attaching.discard)
        except Exception as error:
            accepted.close()
            self._report("connection not accepted", error)

    async def _begin_at_once(self, connect: Connect, accepted: socket.socket) -> None:
        await self._loop.connect_accepted_socket(connect, accepted)

    async def _attach(self, accepted: socket.socket) -> None:
        try:
            await self._admit(self._connect, accepted)
        except Exception as error:
            # The transport may have closed the descriptor, and another file may have it now. Shutting down
            # affects only connections, and no file is closed.
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
            accepted.detach()
            self._report("connection not accepted", error)

    def _cannot_accept(self, listening: socket.socket, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in _BROKEN:
            self._end(error)
            return
        # The timer first: if it cannot be created, the socket is still watched.
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
        """Log the error. Logging needs memory, too; without it only the log line is lost."""
        with suppress(MemoryError):
            self._note(event, str(error) or type(error).__name__)
