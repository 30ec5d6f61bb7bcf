"""The listeners of a broker, and the number, the idle time and the end of its connections.

`start` opens every listener. `close` ends in order: it accepts no connection and starts no request, ends
waits early, waits until started requests are answered, and then closes each connection. A client that has not
read its answers by then is cut off. `connection.py` handles each single connection. If a listener fails,
`failed` is set, and the process must end, because the broker can accept no clients.

One coarse timer checks for idle connections.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.listener import Listener
from barnabas.broker.network.connection import Connection, ConnectionLimits, Identify
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.handler import Handler, Response
from barnabas.broker.network.open_port import Port, PortLost, open_port
from barnabas.broker.network.request_budget import RequestBudget
from barnabas.broker.network.request_metrics import MakeMeasures, plain_measures
from barnabas.broker.network.warming import Warming
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.broker.security.users import Users
from barnabas.protocol.api import ApiKey
from barnabas.runtime.clock import Clock
from barnabas.runtime.counted_line import CountedLines
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import ResponseBudget

if TYPE_CHECKING:
    from barnabas.broker.network.listener_tls import ListenerTls
    from barnabas.broker.network.sasl_gate import SaslListener

log = get_logger("server")

SHUTDOWN_GRACE_SECONDS = 5.0
"""How long `close` waits for requests to end and for clients to read."""

_IDLE_SWEEPS = 4
"""The checks of each connection per `connections.max.idle.ms`; the first check after that time closes it."""


class ServedBroker(Protocol):
    """A broker, as the server uses it."""

    @property
    def metrics(self) -> Metrics: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def deadlines(self) -> Deadlines: ...

    @property
    def effective_config(self) -> EffectiveConfig: ...

    @property
    def quotas(self) -> ClientQuotas:
        """The clients' quotas and usage."""
        ...

    @property
    def users(self) -> Users:
        """The users with a password."""
        ...

    @property
    def connection_quotas(self) -> ConnectionQuotas:
        """The quotas of new connections and their usage."""
        ...

    @property
    def long_work(self) -> LongWork:
        """Decodes and encodes large messages."""
        ...

    @property
    def response_budget(self) -> ResponseBudget:
        """Bounds the bytes of responses in memory."""
        ...

    def connection_closed(self, connection_id: int) -> None:
        """A client is gone: release its state of the connection, such as a share session."""
        ...


class Server:
    """Serves one broker's clients. `start` once, `close` once."""

    def __init__(
        self,
        broker: ServedBroker,
        config: BrokerConfig,
        handlers: Mapping[int, Handler],
        *,
        warmed_apis: Sequence[ApiKey] = (),
        open_port: Callable[[str, int, int], Awaitable[Port]] = open_port,
        connections_max: int = sys.maxsize,
        make_measures: MakeMeasures = plain_measures,
    ) -> None:
        """`handlers` are by API key; those of `warmed_apis` are loaded while no requests arrive.

        `open_port` gets host, port and the length of the queue of connections to accept; by default it opens
        ports of the system. `connections_max` is the number for which the process has descriptors. Raises
        `ConfigError` if the keys or certificates of a listener cannot be used.
        """
        self.listeners: tuple[Listener, ...] = ()
        """The open listeners, with their actual ports."""
        self.failed: asyncio.Future[PortLost] = asyncio.get_running_loop().create_future()
        """Done if a listener has failed."""
        self._open_port = open_port
        self.tls = _open_tls(broker, config, self._room)
        """None if no listener has TLS."""
        self._sasl = _open_sasl(broker, config)
        """By the names of the listeners that have it."""
        self._broker = broker
        self._config = config
        queued_bytes_max = config.integer("queued.max.request.bytes")
        self.request_budget = RequestBudget(queued_bytes_max if queued_bytes_max >= 0 else None)
        self.give_back = broker.response_budget.give_back
        self._limits = ConnectionLimits(frame_bytes_max=config.integer("socket.request.max.bytes"))
        self._descriptors_max = connections_max
        self._connections_max = min(config.integer("max.connections"), connections_max)
        self._dispatcher = Dispatcher(
            handlers,
            broker.metrics,
            broker.clock,
            broker.quotas,
            broker.long_work,
            default_partition_count=config.integer("num.partitions"),
            make_measures=make_measures,
        )
        self._warming = Warming(self._dispatcher, warmed_apis)
        self._ports: list[Port] = []
        self._silent_sweeps: dict[Connection, int] = {}
        """Every connection, with the number of consecutive checks at which it was idle."""
        self._unfinished: set[asyncio.Future[Response]] = set()
        self._next_connection_id = 0
        self._next_sweep: asyncio.TimerHandle | None = None
        self._ended: asyncio.Event | None = None
        broker.metrics.gauge("barnabas_connections", lambda: len(self._silent_sweeps))
        self._lines = CountedLines(broker.clock, broker.deadlines)
        self._refused = broker.metrics.counter("barnabas_connections_refused_total")
        self._idled = broker.metrics.counter("barnabas_connections_idle_closed_total")

    async def start(self) -> tuple[Listener, ...]:
        """Open all listeners and return them. Raises `OSError`, and opens none, if an address is not
        usable.
        """
        try:
            self.listeners = tuple([await self._listen(listener) for listener in self._config.listeners])
        except OSError:
            for port in self._ports:
                port.close()
            raise
        if self._config.integer("connections.max.idle.ms") > 0:
            self._sweep_later()
        if self.tls is not None:
            self.tls.begin()
        self._warming.begin()
        return self.listeners

    async def close(self) -> None:
        """Finish started requests within `SHUTDOWN_GRACE_SECONDS`, and close every connection."""
        for port in self._ports:
            port.close()
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        self._warming.end()
        if self.tls is not None:
            self.tls.close()
        for sasl in self._sasl.values():
            sasl.close()
        self._ended = asyncio.Event()
        for connection in list(self._silent_sweeps):
            connection.drain()
        self._note_end()
        try:
            await asyncio.wait_for(self._ended.wait(), SHUTDOWN_GRACE_SECONDS)
        except TimeoutError:
            log.warning(
                "connections cut off", connections=len(self._silent_sweeps), requests=len(self._unfinished)
            )
            for connection in list(self._silent_sweeps):
                connection.abort()
        self._lines.flush()

    async def disconnect_clients(self) -> None:
        """Close every connection at once; answers that were not sent are lost. New clients may connect."""
        cut_off = list(self._silent_sweeps)
        for connection in cut_off:
            connection.abort()
        while not self._silent_sweeps.keys().isdisjoint(cut_off):  # noqa: ASYNC110  one of the next passes
            await asyncio.sleep(0)

    def limit_connections(self, connections_max: int) -> None:
        """Set the limit for new connections; open connections stay."""
        self._connections_max = min(connections_max, self._descriptors_max)

    def keys_changed(self) -> None:
        """The settings of TLS may have changed."""
        if self.tls is not None:
            self.tls.settings_changed()

    # Called by connections (`ConnectionOwner`).

    def connection_opened(self, connection: Connection) -> bool:
        if self._ended is not None:
            return False
        if len(self._silent_sweeps) >= self._connections_max:
            self._refused.add()
            self.note(
                log.warning,
                "connection refused",
                connection.client_host,
                client=connection.client_host,
                connections=len(self._silent_sweeps),
                limit=self._name_limit(),
            )
            return False
        self._silent_sweeps[connection] = 0
        throttle_ms = self._broker.connection_quotas.connected(connection.client_host)
        if throttle_ms:
            connection.close_after(throttle_ms)
        log.debug("connection opened", client=connection.client_host, connection_id=connection.connection_id)
        return True

    def _room(self) -> int:
        """The number of connections that may still be opened."""
        return self._connections_max - len(self._silent_sweeps)

    def _name_limit(self) -> str:
        has_descriptors = self._connections_max < self._descriptors_max
        return "max.connections" if has_descriptors else "open files (RLIMIT_NOFILE)"

    def connection_closed(self, connection: Connection, unfinished: list[asyncio.Future[Response]]) -> None:
        for future in unfinished:
            self._unfinished.add(future)
            future.add_done_callback(self._forget_unfinished)
        if self._silent_sweeps.pop(connection, None) is not None:
            log.debug(
                "connection closed", client=connection.client_host, connection_id=connection.connection_id
            )
            self._broker.connection_closed(connection.connection_id)
        self._note_end()

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        self._lines.note(write, event, key, **details)

    def _forget_unfinished(self, future: asyncio.Future[Response]) -> None:
        self._unfinished.discard(future)
        self._note_end()

    def _note_end(self) -> None:
        if self._ended is not None and not self._silent_sweeps and not self._unfinished:
            self._ended.set()

    # Listening.

    async def _listen(self, listener: Listener) -> Listener:
        """Open one listener, and return it with its actual port."""
        backlog = self._config.integer("socket.listen.backlog.size")
        port = await self._open_port(listener.host, listener.port, backlog)
        self._ports.append(port)
        bound = listener.bound_to(port.number)
        admit = None if self.tls is None else self.tls.admits(listener)
        connect = partial(
            self._connect,
            bound,
            None if self.tls is None else self.tls.identify(listener),
            self._sasl.get(listener.name),
        )
        port.serve(connect, self._port_lost, self._cannot_accept, admit)
        return bound

    def _connect(
        self, listener: Listener, identify: Identify | None, sasl: "SaslListener | None"
    ) -> Connection:
        self._next_connection_id += 1
        connection = Connection(
            self._next_connection_id, listener, self._dispatcher, self, self._limits, identify
        )
        if sasl is not None:
            connection.guard(sasl.gate(connection, self._dispatcher), sasl.frame_bytes_max)
        return connection

    def _cannot_accept(self, event: str, reason: str) -> None:
        self.note(log.error, event, reason, reason=reason)

    def _port_lost(self, error: PortLost) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    # Idle connections

    def _sweep_later(self) -> None:
        seconds = self._config.integer("connections.max.idle.ms") / _IDLE_SWEEPS / 1000
        self._next_sweep = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that were idle for too long: they sent nothing, and waited for no answer."""
        self._sweep_later()  # first, so that an exception below does not end the sweeps
        for connection, sweeps in list(self._silent_sweeps.items()):
            if connection.heard or connection.waiting:
                connection.heard = False
                self._silent_sweeps[connection] = 0
            elif sweeps < _IDLE_SWEEPS:
                self._silent_sweeps[connection] = sweeps + 1
            else:
                self._idled.add()
                log.debug(
                    "connection idle", client=connection.client_host, connection_id=connection.connection_id
                )
                connection.abort()


def _open_tls(broker: ServedBroker, config: BrokerConfig, room: Callable[[], int]) -> "ListenerTls | None":
    """None if no listener has TLS."""
    if not any(listener.protocol.uses_tls for listener in config.listeners):
        return None
    from barnabas.broker.network.listener_tls import ListenerTls  # few brokers use TLS

    return ListenerTls(broker, config, room)


def _open_sasl(broker: ServedBroker, config: BrokerConfig) -> "Mapping[str, SaslListener]":
    listeners = [listener for listener in config.listeners if listener.protocol.uses_sasl]
    if not listeners:
        return {}
    from barnabas.broker.network.sasl_gate import SaslListener  # few brokers use SASL

    return {listener.name: SaslListener(broker, config, listener) for listener in listeners}
