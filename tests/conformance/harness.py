"""A whole broker under a test's control: its files are in memory, its clock moves on command, and its clients
send real frames without sockets.

`Lab` is the broker with its surroundings, `Client` one connection. A request is answered once the loop has
nothing left to do; a request that waits for a time is answered after `Lab.advance`.
"""

from __future__ import annotations

import asyncio
import errno
import struct
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.listener import Listener
from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.dispatch import Answer, Dispatcher, PendingAnswer
from barnabas.broker.node.broker import Broker
from barnabas.broker.node.opening import open_broker
from barnabas.broker.security.principal import ANONYMOUS
from barnabas.protocol.api import APIS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.protocol.record_batch import build_batch
from barnabas.runtime.clock import WallMs
from barnabas.runtime.completion import Completion
from tests.broker.network.edge_fakes import ManualClock, ManualTimers
from tests.conformance.messages import encoded, message, message_type, read
from tests.storage.memory_filesystem import MemoryFileSystem

DATA_DIRECTORY = "/data"
WALL_START_MS = 1_700_000_000_000
_PASSES_MAX = 500
_PASSES_TO_SETTLE = 30
INTERNAL_PARTITIONS = 5
"""Of each internal topic in a lab that does not set another number: the default of 50 takes a quarter of the
time of most tests.
"""
_FEW_INTERNAL_PARTITIONS = dict.fromkeys(
    (
        "offsets.topic.num.partitions",
        "transaction.state.log.num.partitions",
        "share.coordinator.state.topic.num.partitions",
    ),
    str(INTERNAL_PARTITIONS),
)
share_state_store = "log"
"""`share.state.store` of the labs opened from now on, unless they set one. Each conformance test runs with
both values.
"""
_API_KEYS = {spec.name: key for key, spec in APIS.items()}


class LabClock(ManualClock):
    """Wall time and monotonic time are far apart, so that a mix-up shows."""

    wall_shift_ms = 0
    """How far the wall clock was set forward since the start."""

    def wall_ms(self) -> WallMs:
        return WallMs(WALL_START_MS + self.now_ms + self.wall_shift_ms)


class LabConnection:
    """The part of a connection that handlers see."""

    def __init__(self, connection_id: int, *, inter_broker: bool = False) -> None:
        self.connection_id = connection_id
        self.client_host = "/127.0.0.1"
        listener = Listener("PLAINTEXT", "", 9092, "broker.example", 19092)
        self.listener = listener._replace(inter_broker=inter_broker)
        self.principal = ANONYMOUS
        self.closed = False


class Pending:
    """A request that was sent, with its answer as soon as there is one."""

    def __init__(
        self, api: str, version: int, dispatcher: Dispatcher, started: Answer | PendingAnswer
    ) -> None:
        self._dispatcher = dispatcher
        self._api = api
        self._version = version
        self._answer: Answer | None = None
        self._started: PendingAnswer | None = None
        if isinstance(started, PendingAnswer):
            self._started = started
            reply = started.reply
            self._ending: Completion[Any] | asyncio.Future[Any] = (
                reply if isinstance(reply, Completion) else asyncio.ensure_future(reply)
            )
        else:
            self._answer = started

    @property
    def done(self) -> bool:
        """Whether it is answered, or never will be."""
        if self._started is None:
            return True
        ending = self._ending
        return ending.done if isinstance(ending, Completion) else ending.done()

    @property
    def reply(self) -> Awaitable[Any]:
        """The handler's result for a request that waits."""
        assert self._started is not None, "answered at once"
        return self._started.reply

    def response(self) -> Any:
        """The response, decoded from the frame by kio; None if the request has none."""
        body = self.body()
        return read(message_type(self._api, self._version, "response"), body) if body else None

    def body(self) -> bytes:
        """The encoded response without its header; empty if the request has none."""
        assert self.done, "still waiting"
        if self._started is not None:
            self._answer = self._dispatcher.answer(self._started, self._ending.result())
        assert self._answer is not None
        frame = b"".join(self._answer.buffers)
        if not frame:
            return b""
        (length,) = struct.unpack_from(">i", frame)
        assert length == len(frame) - 4
        flexible = self._version >= APIS[_API_KEYS[self._api]].flexible_version
        return frame[9 if flexible else 8 :]


class Client:
    """One connection to the broker. Without `version` a request has the newest version of its API."""

    def __init__(self, lab: Lab, connection_id: int, client_id: str, *, inter_broker: bool = False) -> None:
        self.lab = lab
        self.connection = LabConnection(connection_id, inter_broker=inter_broker)
        self.client_id = client_id
        self._correlation_ids = count(1)

    def send(self, api: str, version: int | None = None, **values: Any) -> Pending:
        """Sends a request with the fields that `messages.message` accepts."""
        version = APIS[_API_KEYS[api]].max_version if version is None else version
        return self.send_message(api, version, message(message_type(api, version, "request"), values))

    def send_message(self, api: str, version: int, request: Any) -> Pending:
        return self.send_body(api, version, encoded(request))

    def send_body(self, api: str, version: int, body: bytes) -> Pending:
        """Sends an encoded request."""
        key = _API_KEYS[api]
        client_id = self.client_id.encode()
        header = struct.pack(">hhih", key, version, next(self._correlation_ids), len(client_id)) + client_id
        if version >= APIS[key].flexible_version:
            header += b"\0"
        started = self.lab.dispatcher.start(self.connection, header + body)
        return Pending(api, version, self.lab.dispatcher, started)

    async def ask(self, api: str, version: int | None = None, **values: Any) -> Any:
        """The response of a request that is answered before any time passes."""
        return await self.answered(self.send(api, version, **values))

    async def answered(self, pending: Pending) -> Any:
        """The response of a sent request, which must arrive before any time passes."""
        return await self.lab.answered(pending)

    def disconnect(self) -> None:
        """Closes the connection."""
        self.connection.closed = True
        self.lab.broker.connection_closed(self.connection.connection_id)


class Lab:
    """A broker and its machine. `restart` and `crash` start a new broker on the same files."""

    def __init__(self, given: dict[str, str]) -> None:
        self.clock = LabClock()
        self.timers = ManualTimers(self.clock)
        self.filesystem = MemoryFileSystem()
        self.broker: Broker
        self.dispatcher: Dispatcher
        own = {"log.dirs": DATA_DIRECTORY, "share.state.store": share_state_store}
        self.given = own | _FEW_INTERNAL_PARTITIONS | given
        self._connection_ids = count(1)
        self._admin: Client | None = None

    @property
    def store(self) -> str:
        """`share.state.store`: log or topic."""
        return self.given["share.state.store"]

    def use_store(self, store: str) -> None:
        """`share.state.store` of the next start."""
        self.given["share.state.store"] = store

    def state_directory(self, group_id: str, partition: TopicIdPartition) -> str:
        """The name of the log with the group's state of this partition."""
        share_state = self.broker.share_state
        if share_state is None:
            topic = self.broker.metadata.image.topics_by_id[partition.topic_id]
            return f"{topic.name}-{partition.partition}"
        key = SharePartitionKey(group_id, *partition)
        return f"__share_group_state-{share_state.coordinator.partition_of(key)}"

    async def start(self) -> None:
        self.timers = ManualTimers(self.clock)
        self.broker = await open_broker(
            BrokerConfig(self.given),
            clock=self.clock,
            filesystem=self.filesystem,
            call_later=self.timers.call_later,
        )
        broker = self.broker
        self.dispatcher = Dispatcher(
            LazyHandlers(broker),
            broker.metrics,
            broker.clock,
            broker.quotas,
            broker.long_work,
            default_partition_count=broker.config.integer("num.partitions"),
        )
        self._admin = None

    async def restart(self, *, down_ms: int = 10) -> None:
        """Closes the broker cleanly, and opens another."""
        await self.broker.close()
        self.clock.now_ms += down_ms
        await self.start()

    async def crash(self) -> None:
        """Kills the process: the next broker finds everything that was written."""
        left = self.filesystem.copy()
        await self.broker.close()
        self.filesystem = left
        await self.start()

    async def lose_power(self) -> None:
        """Cuts the power: the next broker finds only synced data."""
        left = self.filesystem.after_power_loss()
        await self.broker.close()
        self.filesystem = left
        await self.start()

    async def advance(self, ms: int) -> None:
        """Lets time pass: timers fire in order, each with its consequences."""
        await settle()
        end_ms = self.clock.now_ms + ms
        while due_ms := [at_ms for at_ms in self.timers.armed_ms if at_ms <= end_ms]:
            self.timers.advance(max(min(due_ms) - self.clock.now_ms, 0))
            await settle()
        self.timers.advance(end_ms - self.clock.now_ms)
        await settle()

    @contextmanager
    def stalled_disk(self) -> Generator[None]:
        """Work for threads waits until the end of the block: with log.flush=always, each write."""
        self.filesystem.hold()
        try:
            yield
        finally:
            self.filesystem.release()

    @contextmanager
    def broken_disk(self, directory_name: str) -> Generator[None]:
        """Writes to the log of a partition (such as `t-0`) fail; others do not."""
        self.filesystem.write_error = errno.EIO
        self.filesystem.failing_suffix = f"{directory_name}/{0:020d}.log"
        yield
        self.filesystem.write_error = None

    async def answered(self, pending: Pending) -> Any:
        await self.ended(pending)
        return pending.response()

    async def ended(self, pending: Pending) -> None:
        """Waits for an answer that must come before any time passes."""
        for _ in range(_PASSES_MAX):
            if pending.done:
                return
            await asyncio.sleep(0)
        raise AssertionError("the request waits")

    def client(self, client_id: str = "client") -> Client:
        """A new connection."""
        return Client(self, next(self._connection_ids), client_id)

    def another_broker(self) -> Client:
        """A new connection to the listener for brokers."""
        return Client(self, next(self._connection_ids), "broker", inter_broker=True)

    @property
    def admin(self) -> Client:
        """A connection for requests of the harness itself."""
        if self._admin is None:
            self._admin = self.client("admin")
        return self._admin

    async def create_topic(self, name: str = "t", partition_count: int = 1, **configs: str) -> UUID:
        """A topic's id. `__` in a setting's name stands for a dot."""
        topic = {
            "name": name,
            "num_partitions": partition_count,
            "replication_factor": 1,
            "configs": [{"name": key.replace("__", "."), "value": value} for key, value in configs.items()],
        }
        response = await self.admin.ask("create_topics", topics=[topic])
        assert response.topics[0].error_code is ErrorCode.none, response
        topic_id: UUID = response.topics[0].topic_id
        return topic_id

    async def delete_topic(self, name: str) -> None:
        response = await self.admin.ask("delete_topics", topics=[{"name": name}])
        assert response.responses[0].error_code is ErrorCode.none, response
        await settle()

    async def configure_group(self, group_id: str, **configs: object) -> None:
        """Sets a group's configuration, without `share.` in the names; `_` stands for a dot."""
        await self.set_group_configs(
            group_id, {f"share.{name.replace('_', '.')}": str(value) for name, value in configs.items()}
        )

    async def set_group_configs(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Sets a group's configuration."""
        settings = [{"name": name, "config_operation": 0, "value": value} for name, value in configs.items()]
        resource = {"resource_type": 32, "resource_name": group_id, "configs": settings}
        response = await self.admin.ask("incremental_alter_configs", resources=[resource])
        assert response.responses[0].error_code is ErrorCode.none, response

    async def produce(self, topic_id: UUID, *batch_sizes: int, partition: int = 0) -> None:
        """Appends one batch for each size; each record's value is its index in its batch."""
        for size in batch_sizes:
            response = await self.admin.ask(
                "produce", **produce_fields(topic_id, partition, batch(size, self.clock.wall_ms()))
            )
            assert response.responses[0].partition_responses[0].error_code is ErrorCode.none, response
        await settle()

    async def delete_records(self, name: str, before_offset: int, partition: int = 0) -> None:
        asked = {"name": name, "partitions": [{"partition_index": partition, "offset": before_offset}]}
        response = await self.admin.ask("delete_records", topics=[asked])
        assert response.topics[0].partitions[0].error_code is ErrorCode.none, response
        await settle()

    async def offsets(self, group_id: str, partition: TopicIdPartition) -> tuple[int, int]:
        """The group's position in a partition, as (start offset, lag)."""
        topic = self.broker.metadata.image.topics_by_id[partition.topic_id]
        asked = {
            "group_id": group_id,
            "topics": [{"topic_name": topic.name, "partitions": [partition.partition]}],
        }
        response = await self.admin.ask("describe_share_group_offsets", groups=[asked])
        described = response.groups[0].topics[0].partitions[0]
        return described.start_offset, described.lag


@asynccontextmanager
async def open_lab(**given: str) -> AsyncGenerator[Lab]:
    """A lab whose broker has started with `given`; `__` in a setting's name stands for a dot."""
    lab = Lab({name.replace("__", "."): value for name, value in given.items()})
    await lab.start()
    yield lab
    await lab.broker.close()


async def settle() -> None:
    """Lets the loop finish all work that is due now."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # the calls that are due
    for _ in range(_PASSES_TO_SETTLE):
        await asyncio.sleep(0)
        if not ready:
            return


def batch(size: int, timestamp_ms: int, value_bytes: int = 1, **options: int) -> bytes:
    """A batch in the form that a producer sends."""
    records = [(None, str(number).encode().rjust(value_bytes, b".")) for number in range(size)]
    return build_batch(0, records, leader_epoch=-1, timestamp_ms=timestamp_ms, **options)


def produce_fields(
    topic_id: UUID, partition: int, records: bytes | None, *, acks: int = -1
) -> dict[str, Any]:
    """A Produce request of version 13."""
    partitions = [{"index": partition, "records": records}]
    return {"acks": acks, "topic_data": [{"topic_id": topic_id, "partition_data": partitions}]}


def partitions_of(topic_id: UUID, partition_count: int) -> Iterator[TopicIdPartition]:
    return (TopicIdPartition(topic_id, index) for index in range(partition_count))
