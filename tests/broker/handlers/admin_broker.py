"""The parts of a broker that the admin handlers use: real settings, controller and logs."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from kio.serial import entity_writer

from barnabas.broker.config.listener import Listener
from barnabas.broker.handlers.lazy_handlers import bound_handler
from barnabas.broker.internal_topics.internal_topics import InternalTopics
from barnabas.broker.network.handler import ClientConnection, RequestContext
from barnabas.broker.node.broker import Broker
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.producer_ids import ProducerIds
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import decode_request, encode_response, shape_version
from barnabas.protocol.kio_messages import Entity, message_class, message_reader
from barnabas.protocol.lift import converter
from barnabas.protocol.record_batch import validate_produced
from barnabas.protocol.records import Record, encode_records
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.stepwise import StepwiseWork
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import RealFileSystem
from barnabas.storage.log.partition_log import PartitionLog
from tests.broker.config.config_fakes import configured
from tests.broker.network.edge_fakes import ManualClock
from tests.coordinator.metadata.metadata_fakes import NODE, MemoryLog, counted_ids, metadata_log_over
from tests.storage.steady_filesystem import SteadyFileSystem

LISTENER = Listener("PLAINTEXT", "", 9092, "broker.example", 19092)


class AdminLogs:
    """The part of `PartitionLogs` that the admin handlers use; it opens logs on request."""

    def __init__(self, broker: "AdminBroker") -> None:
        self._broker = broker
        self._logs: dict[tuple[str, int], PartitionLog] = {}

    def get(self, topic: Topic, index: int) -> PartitionLog | None:
        return self._logs.get((topic.name, index))

    def open_all(self, partitions: Iterable[tuple[Topic, int]]) -> Awaitable[None] | None:
        closed = [
            (topic, index)
            for topic, index in partitions
            if 0 <= index < len(topic.partitions) and (topic.name, index) not in self._logs
        ]
        return self._open(closed) if closed else None

    async def _open(self, partitions: Sequence[tuple[Topic, int]]) -> None:
        for topic, index in partitions:
            self._logs[topic.name, index] = await self._broker.log_directory.log(
                topic.name,
                index,
                topic.topic_id,
                self._broker.effective_config.topic_config(topic.name),
                leader_epoch=self._broker.metadata.node_epoch,
            )


class AdminBroker:
    """The part of `Broker` that the admin handlers use. It opens logs on request, in the test's directory."""

    def __init__(self, directory: Path, log_directory: LogDirectory, given: dict[str, str]) -> None:
        self.log_directory = log_directory
        parts = configured(**given)
        ids = counted_ids()
        self.store = MemoryLog()
        self.config = parts.config
        self.effective_config = parts.effective
        self.metadata = Controller(
            NODE,
            metadata_log_over(self.store, directory),
            parts.rules,
            image=parts.image,
            default_partition_count=parts.config.integer("num.partitions"),
            new_id=lambda: next(ids),
            wall_ms=lambda: 1_700_000_000_000,
        )
        self.clock = ManualClock()
        windows = QuotaWindows(sample_count=11, window_ms=1000)
        self.quotas = ClientQuotas(windows, windows, self.clock.monotonic_ms)
        self.internal_topics = InternalTopics(self.config, self.metadata)
        self.share_state = self.transactions = None
        self.producer_ids = ProducerIds(self.metadata.allocate_producer_id_block)
        self.cluster_id = "cluster"
        self.node_id = parts.config.node_id
        self.logs = AdminLogs(self)
        self.long_work = LongWork(RealFileSystem())
        self.time_lookups = StepwiseWork(RealFileSystem())

    async def close(self) -> None:
        await self.log_directory.close()

    # For the tests.

    async def create(self, *new_topics: NewTopic) -> None:
        creations = await self.metadata.create_topics(new_topics)
        assert all(creation.error is None for creation in creations)

    async def produce(self, topic_name: str, index: int, timestamps_ms: Sequence[int]) -> PartitionLog:
        """Append one batch with a record for each time."""
        topic = self.metadata.image.topics_by_name[topic_name]
        opening = self.logs.open_all([(topic, index)])
        if opening is not None:
            await opening
        log = self.logs.get(topic, index)
        assert log is not None
        records = [Record(offset, time_ms, None, b"v") for offset, time_ms in enumerate(timestamps_ms)]
        batch = encode_records(records)
        await log.append_produced(batch, validate_produced(batch, message_bytes_max=1 << 20), 0)
        return log


async def admin_broker(directory: Path, **given: str) -> AdminBroker:
    """A broker that has started with the settings `given`; `__` in a keyword stands for a dot."""
    log_directory = await LogDirectory.open(
        SteadyFileSystem(), str(directory / "logs"), node_id=NODE.node_id, wall_ms=lambda: 0
    )
    broker = AdminBroker(directory, log_directory, given)
    await broker.metadata.start()
    return broker


async def ask(
    broker: AdminBroker, handler: Callable[..., Any], request: Entity, *, version: int | None = None
) -> Any:
    """The response to `request`, from a client that speaks `version`.

    The handler gets the request as from a connection. The response is encoded, to check that this works; one
    that the handler has encoded is decoded.
    """
    name = handler.__name__.removeprefix("handle_")
    key = ApiKey[name.upper()]
    version = APIS[key].max_version if version is None else version
    connection = cast("ClientConnection", None)
    context = RequestContext(key, version, "test", "/127.0.0.1", 1, LISTENER, connection, started_ms=0)
    received = decode_request(key, version, _body(key, version, request), 0)
    reply: Any = bound_handler(cast("Broker", broker), name)(context, received)
    response = await reply if inspect.isawaitable(reply) else reply
    if isinstance(response, EncodedBody):
        return _read(key, version, b"".join(response.buffers))
    assert encode_response(key, version, response)
    return response


def _read(key: ApiKey, version: int, body: bytes) -> Entity:
    """The response in `body`, in the shape of its API."""
    source = message_class(key, version, "response")
    shape = message_class(key, shape_version(key, version), "response")
    return message_reader(source, shape)(body, 0)


def _body(key: ApiKey, version: int, request: Entity) -> bytes:
    """The bytes that a client with `version` sends for `request`, which is in the shape of its API."""
    target = message_class(key, version, "request")
    lower, buffer = converter(type(request), target), BytesIO()
    entity_writer(target)(buffer, request if lower is None else cast("Entity", lower(request)))
    return buffer.getvalue()
