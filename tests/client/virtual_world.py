"""A whole broker with its server, and consumers that connect to it, in virtual time.

The broker is the real one on files in memory. The network is simulated, so a lock of a minute ends in a
millisecond. `World` is the conformance lab behind a port, with a process that can be killed. `virtually`
turns a coroutine that accepts a `World` into a test.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.server import Server
from barnabas.broker.node.opening import open_broker
from barnabas.client import Outcome, ShareConsumer, ShareRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.clock import MonotonicMs, WallMs
from tests.conformance.harness import DATA_DIRECTORY, WALL_START_MS, Lab, LabClock, produce_fields
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.virtual_loop import Process, VirtualLoop, run_to_end

ADDRESS = "broker:9092"
GROUP = "workers"
TOPIC = "orders"
LOCK_MS = 15_000
"""The shortest lock that a broker allows by default."""

Records = list[ShareRecord[bytes | None, bytes | None]]
Consumer = ShareConsumer[bytes | None, bytes | None]
_Arguments = ParamSpec("_Arguments")


class ClientLoop(VirtualLoop):
    """Connects to the ports of the simulated network."""

    network: SimulatedNetwork
    """Must be set before any port is opened."""

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        link = await self.network.connect(protocol_factory, port)
        return link.client, link.client.protocol


def client_loop() -> ClientLoop:
    """The running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ClientLoop)
    return loop


class LoopClock(LabClock):
    """The loop's virtual time as a clock."""

    def wall_ms(self) -> WallMs:
        return WallMs(WALL_START_MS + self.monotonic_ms())

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(int(asyncio.get_running_loop().time() * 1000))


class World(Lab):
    """The broker at `ADDRESS`, with the operations of a test."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__({"listeners": f"PLAINTEXT://{ADDRESS}", **given})
        self.clock = LoopClock()
        self.network = client_loop().network = SimulatedNetwork(Random(1))
        self.outcomes: list[Outcome] = []
        """The outcomes that the consumers reported."""
        self.topic_ids: dict[str, UUID] = {}
        self._config = BrokerConfig(self.given)
        self._process: Process | None = None
        self._server: Server

    async def start(self) -> None:
        self._process = Process("broker")
        await self._process.run(self._serve())
        self._admin = None

    def kill(self) -> None:
        """SIGKILL: the next process finds only the bytes that were written."""
        assert self._process is not None
        self._process.kill()
        self.network.end_process()
        self.filesystem = self.filesystem.copy()

    async def stop(self) -> None:
        """Close the server and the broker."""
        await self._server.close()
        await self.broker.close()

    def cut_connections(self) -> None:
        """Cut every connection; both sides notice."""
        for link in self.network.links:
            link.cut()

    async def topic(self, name: str = TOPIC, *values: str, partition_count: int = 1) -> None:
        """A topic with these records in its first partition."""
        self.topic_ids[name] = await self.create_topic(name, partition_count)
        await self.write(name, *values)

    async def group(self, group_id: str = GROUP, **configs: object) -> None:
        """A group that starts with the first record; the settings are those of `Lab.configure_group`."""
        await self.configure_group(group_id, auto_offset_reset="earliest", **configs)

    async def write(
        self, name: str, *values: str, partition: int = 0, compression: Compression = Compression.NONE
    ) -> None:
        """Append the values in one batch."""
        if not values:
            return
        now_ms = self.clock.wall_ms()
        records = [Record(number, now_ms, None, value.encode()) for number, value in enumerate(values)]
        await self.append(name, encode_records(records, compression=compression), partition=partition)

    async def append(self, name: str, batch: bytes, *, partition: int = 0) -> None:
        """Append an encoded batch."""
        fields = produce_fields(self.topic_ids[name], partition, batch)
        response = await self.admin.ask("produce", **fields)
        assert response.responses[0].partition_responses[0].error_code is ErrorCode.none, response

    def spoil(self, name: str, *, at: int) -> None:
        """Flip a bit in the log of a topic's first partition, at byte `at`."""
        self.filesystem.files[f"{DATA_DIRECTORY}/{name}-0/{0:020d}.log"][at] ^= 1

    def consumer(self, *topics: str, group: str = GROUP, **options: Any) -> Consumer:
        """A consumer that starts when it is entered."""
        given: dict[str, Any] = {"random": Random(2).random, "on_outcome": self.outcomes.append, **options}
        return ShareConsumer(ADDRESS, group=group, topics=topics or (TOPIC,), **given)

    async def lag(self, name: str = TOPIC, group: str = GROUP, partition: int = 0) -> int:
        """The group's lag in a partition."""
        asked = {"group_id": group, "topics": [{"topic_name": name, "partitions": [partition]}]}
        response = await self.admin.ask("describe_share_group_offsets", groups=[asked])
        lag: int = response.groups[0].topics[0].partitions[0].lag
        return lag

    async def members(self, group: str = GROUP) -> list[str]:
        """The group's members, by member id."""
        response = await self.admin.ask("share_group_describe", group_ids=[group])
        return sorted(member.member_id for member in response.groups[0].members)

    async def group_members(self, group: str) -> int:
        """The number of members of a consumer group."""
        response = await self.admin.ask("consumer_group_describe", group_ids=[group])
        return len(response.groups[0].members)

    async def _serve(self) -> None:
        self.broker = await open_broker(self._config, clock=self.clock, filesystem=self.filesystem)
        handlers = LazyHandlers(self.broker)
        self.dispatcher = Dispatcher(handlers, self.broker.metrics, self.broker.clock)
        self._server = Server(self.broker, self._config, handlers, open_port=self.network.open_port)
        await self._server.start()
        self.broker.idle_logs.begin_to_open()


def virtually(
    test: Callable[Concatenate[World, _Arguments], Coroutine[Any, Any, None]],
) -> Callable[_Arguments, None]:
    """A test in a world of its own; `with_settings` gives settings of the broker."""

    @functools.wraps(test)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        async def in_world() -> None:
            world = World(getattr(test, "settings", {}))
            await world.start()
            await test(world, *args, **kwargs)

        run_virtually(in_world())

    parameters = list(inspect.signature(test).parameters.values())[1:]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def with_settings(**settings: str) -> Callable[[Any], Any]:
    """Settings of the broker for a test in a world; `__` in a name stands for a dot."""

    def note(test: Any) -> Any:
        test.settings = {name.replace("__", "."): value for name, value in settings.items()}
        return test

    return note


def run_virtually(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in a loop with virtual time; tasks that still run are cancelled."""
    run_to_end(ClientLoop(), main)


async def take(consumer: Consumer, count: int, *, within_seconds: float = 60) -> Records:
    """Poll until `count` records have arrived."""
    records: Records = []
    async with asyncio.timeout(within_seconds):
        while len(records) < count:
            records += await consumer.poll(max_records=count - len(records))
    return records


def values(records: Sequence[ShareRecord[Any, bytes | None]]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


async def eventually(holds: Callable[[], Awaitable[bool]], *, within_seconds: float = 60) -> None:
    """Return once `holds` returns True; it is called every 10 ms."""
    async with asyncio.timeout(within_seconds):
        while not await holds():  # noqa: ASYNC110  the change happens behind a port, without a future
            await asyncio.sleep(0.01)
