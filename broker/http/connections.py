"""The connections of HTTP: uvicorn's, on the broker's own port, with bounds on their number and idle time.

uvicorn's server is not used: it handles the signals of the process, and wakes up ten times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, cast

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from barnabas.broker.network.open_port import Port, PortLost, open_port
from barnabas.runtime.logging import get_logger

log = get_logger("http")

CONNECTIONS_MAX: Final = 64
"""A further connection is closed at once."""

HEAD_BYTES_MAX: Final = 16 * 1024
"""The most bytes of a request line with its headers (431 or 400)."""

SWEEP_SECONDS: Final = 10
"""A connection that has begun no request, or has not sent all of it, is closed at the second sweep."""

GRACE_SECONDS: Final = 2.0
"""How long `close` waits for requests to end."""

_BACKLOG: Final = CONNECTIONS_MAX
_REMEDY: Final = "Name another address in http.listener; port 0 selects a free port"

OpenPort = Callable[[str, int, int, str], Awaitable[Port]]


class _BoundedConnection(H11Protocol):
    """Closes itself if there are too many."""

    @property
    def last_request(self) -> RequestResponseCycle | None:
        """The last request that it has begun; None before the first."""
        return cast("RequestResponseCycle | None", self.cycle)

    @property
    def is_idle(self) -> bool:
        """Whether no request was completely received that is not answered yet."""
        last = self.last_request
        return last is None or last.response_complete or last.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()


class HttpServer:
    """Serves one application. `start` once, `close` once."""

    def __init__(self, application: ASGIApp, open_port: OpenPort = open_port) -> None:
        self._config = Config(
            application,
            interface="asgi3",
            http=_BoundedConnection,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        self._config.load()
        self._state = ServerState()
        self._open_port = open_port
        self._port: Port | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._idle: dict[_BoundedConnection, RequestResponseCycle | None] = {}
        """Each connection that was idle at the last sweep, with the last request that it had begun then."""

    @property
    def port(self) -> int:
        """The actual port."""
        assert self._port is not None, "the server has not been started"
        return self._port.number

    async def start(self, host: str, port: int) -> None:
        """Raises OSError if the address cannot be used."""
        self._port = await self._open_port(host, port, _BACKLOG, _REMEDY)
        self._port.serve(self._connect, self._port_lost, self._note)
        self._sweep_later()

    async def close(self) -> None:
        """Accepts no connection, and ends the others when their requests are answered, or are late."""
        if self._port is not None:
            self._port.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in self._connections():
            if not connection.transport.is_closing():
                connection.shutdown()
        tasks = list(self._state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*late, return_exceptions=True)
        for connection in self._connections():
            connection.transport.abort()

    def _connect(self) -> asyncio.BaseProtocol:
        return _BoundedConnection(self._config, self._state, {})

    def _note(self, event: str, reason: str) -> None:
        log.warning(event, reason=reason)

    def _port_lost(self, _: PortLost) -> None:
        log.error("HTTP ended, and the broker serves without it: its listener failed")

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._sweep_later()
        idle: dict[_BoundedConnection, RequestResponseCycle | None] = {
            connection: connection.last_request for connection in self._connections() if connection.is_idle
        }
        for connection, request in idle.items():
            if connection in self._idle and self._idle[connection] is request:
                connection.transport.abort()
        self._idle = idle

    def _connections(self) -> list[_BoundedConnection]:
        return [
            connection for connection in self._state.connections if isinstance(connection, _BoundedConnection)
        ]
