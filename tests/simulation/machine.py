"""The machine that the broker runs on: a disk, a clock, and one process after another.

The process is the real broker with its real server; the simulation begins below it. It ends cleanly (`stop`),
by a signal (`kill`: written data stays) or with the machine (`lose_power`: synced data stays). `keep_running`
starts the next process a little later, like a service's supervisor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.server import Server
from barnabas.broker.node.broker import Broker
from barnabas.broker.node.opening import open_broker
from barnabas.runtime.clock import MonotonicMs, WallMs
from barnabas.storage.errors import StorageError
from tests.simulation.simulated_disk import Disk, SimulatedFileSystem
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import Killed, Process, VirtualLoop

PORT = 9092
DATA_DIRECTORY = "/data"

_WALL_START_MS = 1_700_000_000_000
_DOWN_MS_MAX = 400
_FAILED_STARTS_MAX = 100


class MachineClock:
    """Monotonic time is the loop's; wall time is far from it, and may be set."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._wall_offset_ms = self._wall_offset_ms_max = _WALL_START_MS
        self.change_count = 0
        """The number of times that wall time was set."""
        self.on_set: Callable[[int], None] = lambda _: None
        """Called with the new wall time."""

    def wall_ms(self) -> WallMs:
        return WallMs(self._loop.now_ms + self._wall_offset_ms)

    @property
    def was_set(self) -> bool:
        """Whether wall time was ever set to another time."""
        return self._wall_offset_ms_max != _WALL_START_MS or self._wall_offset_ms != _WALL_START_MS

    def move(self, by_ms: int) -> None:
        """Sets wall time ahead by this time."""
        self.change_count += 1
        self._wall_offset_ms += by_ms
        self._wall_offset_ms_max = max(self._wall_offset_ms, self._wall_offset_ms_max)
        self.on_set(self.wall_ms())

    def catch_up(self) -> None:
        """Sets wall time to its highest value ever, so that no time stamp lies in the future."""
        self.move(self._wall_offset_ms_max - self._wall_offset_ms)

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self._loop.now_ms)


class Machine:
    """The broker's machine. `broker` is None while no process serves."""

    def __init__(
        self,
        disk: Disk,
        network: SimulatedNetwork,
        trace: Trace,
        random: Random,
        settings: Mapping[str, str],
        on_opened: Callable[[Broker], Awaitable[None]],
    ) -> None:
        """`on_opened` is awaited in each new process after the broker has recovered, before it serves."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.disk = disk
        self.clock = MachineClock(loop)
        self.broker: Broker | None = None
        self.start_count = 0
        self.power_loss_count = 0
        self._loop = loop
        self._network = network
        self._trace = trace
        self._random = random
        self._config = BrokerConfig(
            {"log.dirs": DATA_DIRECTORY, "listeners": f"PLAINTEXT://127.0.0.1:{PORT}", **settings}
        )
        self._on_opened = on_opened
        self._process: Process | None = None
        self._server: Server | None = None
        disk.on_crash = self.kill

    async def keep_running(self) -> None:
        """Starts the broker, and starts it again each time it has ended."""
        while True:
            await self._start()
            assert self._process is not None
            await asyncio.wait([self._process.ended])
            await asyncio.sleep(self._random.uniform(1, _DOWN_MS_MAX) / 1000)

    async def stop(self) -> None:
        """Stops the process cleanly; does nothing if none serves."""
        process, broker, server = self._process, self.broker, self._server
        if process is None or broker is None or server is None:
            return
        self.broker = None
        self._trace.event("the broker gets the signal to stop")
        try:
            await process.run(_close(server, broker))
        except Killed:
            return
        except (OSError, StorageError) as error:
            self._trace.event(f"the broker did not end cleanly: {error}")
        self._end()

    def kill(self) -> None:
        """Ends the process now; its connections are reset."""
        self._end()
        self._network.end_process()

    def lose_power(self) -> None:
        """Ends everything now without any message to clients; the random generator decides which unsynced
        data stays.
        """
        self._end()
        self._network.vanish()
        self.disk.lose_power()
        self.power_loss_count += 1

    def _end(self) -> None:
        self.broker = self._server = None
        if self._process is not None and self._process.alive:
            self._process.kill()

    async def _start(self) -> None:
        """Starts processes until one serves. A failing disk may prevent that for a while."""
        for _ in range(_FAILED_STARTS_MAX):
            self._process = Process("broker")
            try:
                self.broker, self._server = await self._process.run(self._serve(self._process))
            except Killed:
                pass
            except (OSError, StorageError) as error:
                self._trace.event(f"the broker does not start: {error}")
                self._end()
            else:
                self.start_count += 1
                self._trace.event("the broker serves")
                return
            await asyncio.sleep(self._random.uniform(100, 1000) / 1000)
        raise AssertionError("the broker no longer starts")

    async def _serve(self, process: Process) -> tuple[Broker, Server]:
        """The steps of the command line between its start and a signal."""
        broker = await open_broker(
            self._config,
            clock=self.clock,
            filesystem=SimulatedFileSystem(self.disk, process, self._loop),
            new_id=self._new_id,
        )
        await self._on_opened(broker)
        server = Server(broker, self._config, LazyHandlers(broker), open_port=self._network.open_port)
        broker.dynamic_settings.bind_server(server.limit_connections, server.keys_changed)
        await server.start()
        broker.idle_logs.begin_to_open()
        broker.failed.add_done_callback(lambda _: self._give_up(broker, server))
        return broker, server

    def _give_up(self, broker: Broker, server: Server) -> None:
        """Called in the broker's process when the broker stops because of an error."""
        self._trace.event(f"the broker stops: {broker.failed.result()}")
        if self.broker is broker:
            self._ending = asyncio.get_running_loop().create_task(self._end_in_order(broker, server))

    async def _end_in_order(self, broker: Broker, server: Server) -> None:
        self.broker = None
        try:
            await _close(server, broker)
        except (OSError, StorageError) as error:
            self._trace.event(f"the broker did not end cleanly: {error}")
        self._end()

    def _new_id(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


async def _close(server: Server, broker: Broker) -> None:
    try:
        await server.close()
    finally:
        await broker.close()
