"""The connections of HTTP: uvicorn's, on the broker's own port, with bounds on their number and idle time.

Health checks have room of their own: connections beyond CONNECTIONS_MAX may ask only for health, once each.
So clients that hold all connections do not make an orchestrator end the broker.

uvicorn's server is not used: it handles the signals of the process, and wakes up ten times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple, cast

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from barnabas.broker.http.health import HealthChecks
from barnabas.broker.network.open_port import Port, PortLost, open_port
from barnabas.runtime.logging import get_logger

log = get_logger("http")

CONNECTIONS_MAX: Final = 64
"""A further connection is for a health check only (503 for any other request)."""

HEALTH_CONNECTIONS_MAX: Final = 16
"""The most connections of health checks. A further one takes the place of the oldest."""

HEAD_BYTES_MAX: Final = 16 * 1024
"""The most bytes of a request line with its headers (431 or 400)."""

SWEEP_SECONDS: Final = 10
"""A connection is closed at the second sweep at which it waits for its client: for a request, for the rest of
one, or for the client to read its answer.
"""

GRACE_SECONDS: Final = 2.0
"""How long `close` waits for requests to end."""

_BACKLOG: Final = CONNECTIONS_MAX + HEALTH_CONNECTIONS_MAX
_REMEDY: Final = "Name another address in http.listener; port 0 selects a free port"

OpenPort = Callable[[str, int, int, str], Awaitable[Port]]


class _Progress(NamedTuple):
    """A connection that waits for its client. As long as this is the same, the client has done nothing."""

    last_request: RequestResponseCycle | None
    """The last request that the client has begun."""
    unsent_bytes: int
    stall_count: int
    """How often unsent answers have filled the transport's buffer."""


class _BoundedConnection(H11Protocol):
    """A connection that tells whether it waits for its client."""

    def __init__(
        self, config: Config, state: ServerState, admit: Callable[[_BoundedConnection], None]
    ) -> None:
        """`admit` is called once it is open."""
        super().__init__(config, state, {})
        self._admit = admit
        self._stall_count = 0

    @property
    def progress(self) -> _Progress | None:
        """None while the broker works on an answer."""
        last = cast("RequestResponseCycle | None", self.cycle)
        is_idle = last is None or last.response_complete or last.more_body
        if not (is_idle or self.flow.write_paused):
            return None
        return _Progress(last, self.transport.get_write_buffer_size(), self._stall_count)

    def serve_only(self, application: ASGIApp) -> None:
        """Give the requests to this application."""
        self.app = application

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._admit(self)

    def pause_writing(self) -> None:
        self._stall_count += 1
        super().pause_writing()


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
        self._health_checks = HealthChecks(application)
        self._for_health: dict[_BoundedConnection, None] = {}
        """The connections beyond CONNECTIONS_MAX, in the order of their arrival."""
        self._waiting: dict[_BoundedConnection, _Progress] = {}
        """Each connection that waited for its client at the last sweep."""

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

    def sweep(self) -> None:
        """Close each connection that has waited for its client since the last sweep. A timer calls this every
        SWEEP_SECONDS.
        """
        waiting = {
            connection: progress
            for connection in self._connections()
            if (progress := connection.progress) is not None
        }
        for connection, progress in waiting.items():
            if self._waiting.get(connection) == progress:
                connection.transport.abort()
        self._waiting = waiting

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
        return _BoundedConnection(self._config, self._state, self._admit)

    def _admit(self, connection: _BoundedConnection) -> None:
        open_connections = self._state.connections
        self._for_health = {
            health_check: None for health_check in self._for_health if health_check in open_connections
        }
        if len(open_connections) - len(self._for_health) <= CONNECTIONS_MAX:
            return
        if len(self._for_health) >= HEALTH_CONNECTIONS_MAX:
            oldest = next(iter(self._for_health))
            del self._for_health[oldest]
            oldest.transport.abort()
        self._for_health[connection] = None
        connection.serve_only(self._health_checks)

    def _note(self, event: str, reason: str) -> None:
        log.warning(event, reason=reason)

    def _port_lost(self, _: PortLost) -> None:
        log.error("HTTP ended, and the broker serves without it: its listener failed")

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._sweep_later()
        self.sweep()

    def _connections(self) -> list[_BoundedConnection]:
        return [
            connection for connection in self._state.connections if isinstance(connection, _BoundedConnection)
        ]
