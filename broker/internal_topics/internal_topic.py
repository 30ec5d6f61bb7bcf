"""A topic of the broker's own: where the records of a coordinator are kept, as its log.

The topic is created with its first record, and each partition's log with the first record that belongs there:
a broker without groups has none of it. What was decided before a log went offline is never appended once it
is open again: its coordinator begins from what it holds then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.broker.clock import Clock
from barnabas.broker.metrics.metrics import MS_BOUNDS, Histogram
from barnabas.broker.partition_logs import PartitionLogs
from barnabas.broker.process.logging import get_logger
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.metadata.topic_names import (
    GROUP_STATE_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.coordinator.runtime.interfaces import (
    NO_PRODUCER_ID,
    Stored,
    StoredMarker,
    StoredRecord,
    TransactionMarker,
)
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.protocol.record_batch import BatchHeader, KeyValue, iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.storage.appending.append import Append
from barnabas.storage.errors import CorruptBatch, LogClosed, StorageError
from barnabas.storage.log import PartitionLog

logger = get_logger("internal_topic")

_READ_BYTES = 32 * 1024
"""At a time: others wait while the records of so many bytes are taken apart."""


class InternalTopicSpec(NamedTuple):
    """What the topic is created with."""

    name: str
    partition_count: int
    configs: Mapping[str, str | None]


def offsets_topic(partition_count: int) -> InternalTopicSpec:
    """`__consumer_offsets` as Kafka creates it: groups are kept however old their records are."""
    configs: Mapping[str, str | None] = {"cleanup.policy": "compact", "segment.bytes": str(100 * 1024 * 1024)}
    return InternalTopicSpec(GROUP_STATE_TOPIC, partition_count, configs)


def share_state_topic(partition_count: int, segment_bytes: int) -> InternalTopicSpec:
    """`__share_group_state` as Kafka creates it: records go when newer ones stand for them, not by age."""
    configs: Mapping[str, str | None] = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": str(segment_bytes),
        "retention.ms": "-1",
    }
    return InternalTopicSpec(SHARE_STATE_TOPIC, partition_count, configs)


def transactions_topic(partition_count: int, segment_bytes: int) -> InternalTopicSpec:
    """`__transaction_state` as Kafka creates it: the newest record of each transactional id is kept."""
    configs: Mapping[str, str | None] = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": str(segment_bytes),
        "unclean.leader.election.enable": "false",
    }
    return InternalTopicSpec(TRANSACTION_STATE_TOPIC, partition_count, configs)


class InternalTopic:
    """Appends to and reads the partitions of one such topic (`CoordinatorLog`)."""

    def __init__(
        self, spec: InternalTopicSpec, controller: Controller, logs: PartitionLogs, clock: Clock
    ) -> None:
        self._spec = spec
        self._controller = controller
        self._logs = logs
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self.append_ms = Histogram(MS_BOUNDS)
        """How long appends took, also those that failed."""
        self.load_ms = Histogram(MS_BOUNDS)
        """How long partitions took to load."""

    @property
    def name(self) -> str:
        return self._spec.name

    def now_ms(self) -> int:
        """Monotonic."""
        return self._clock.monotonic_ms()

    @property
    def partition_count(self) -> int:
        """As the topic has it, or would have if it were created now."""
        topic = self._topic()
        return self._spec.partition_count if topic is None else len(topic.partitions)

    def append(
        self,
        partition: int,
        records: list[tuple[bytes, bytes | None]],
        producer: ProducerIdentity | None = None,
    ) -> Append:
        """See `CoordinatorLog.append`. One that finds its log offline fails, and has the log opened anew."""
        keyed: list[KeyValue] = [*records]

        def write(log: PartitionLog) -> Append:
            return log.append_records(keyed, self._clock.wall_ms(), producer=producer)

        return self._write(partition, write)

    def append_marker(self, partition: int, marker: TransactionMarker) -> Append:
        """See `CoordinatorLog.append_marker`; an offline log as with `append`."""

        def write(log: PartitionLog) -> Append:
            return log.append_marker(
                *marker.producer,
                marker.coordinator_epoch,
                commit=marker.commit,
                now_ms=self._clock.wall_ms(),
                transaction_version=marker.transaction_version,
            )

        return self._write(partition, write)

    async def read(self, partition: int) -> list[Stored]:
        """Every record of a partition, and the end of every transaction, oldest first. StorageError,
        CorruptBatch with the offset; RecordFormatError.

        What is being appended has ended before.
        """
        await self.drained()
        topic = self._topic()
        if topic is None or partition >= len(topic.partitions):
            return []
        return await _read_all(await self._logs.open(topic, partition))

    def delete_before(self, partition: int, offset: int) -> None:
        """Let go of the records below `offset`, if the partition's log is open; nobody waits for it.

        What stands for them is made safe first: a loss of power must not take both.
        """
        log = self._find_log(partition)
        if log is not None:
            self._start(self._delete_before(log, offset))

    async def drained(self) -> None:
        """Wait for what is being appended or deleted."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _topic(self) -> Topic | None:
        return self._controller.image.topics_by_name.get(self._spec.name)

    def _find_log(self, partition: int) -> PartitionLog | None:
        topic = self._topic()
        return None if topic is None else self._logs.get(topic, partition)

    def _write(self, partition: int, write: Callable[[PartitionLog], Append]) -> Append:
        began_ms = self.now_ms()
        log = self._find_log(partition)
        if log is not None:
            ticket = write(log)
        else:
            ticket = Append()
            self._start(self._write_when_open(ticket, partition, write))
        ticket.add_done_callback(lambda _: self.append_ms.observe(self.now_ms() - began_ms))
        return ticket

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete_before(self, log: PartitionLog, offset: int) -> None:
        try:
            await log.flush()
            log.delete_records(offset)
        except (ApiError, StorageError) as error:
            name = log.topic_partition.directory_name
            logger.warning("old records not deleted", log=name, reason=str(error))

    async def _write_when_open(
        self, ticket: Append, partition: int, write: Callable[[PartitionLog], Append]
    ) -> None:
        try:
            topic = self._topic() or await self._create()
            appended = await write(await self._open_first(topic, partition))
        except Exception as error:
            ticket.fail(error)
        else:
            ticket.base_offset, ticket.last_offset = appended.base_offset, appended.last_offset
            ticket.complete()

    async def _open_first(self, topic: Topic, partition: int) -> PartitionLog:
        """The partition's log, if this is the first time that it is open.

        The append has waited, so any other log has taken the place of one that went offline: LogClosed.
        """
        log = await self._logs.open(topic, partition)
        if self._logs.was_replaced(TopicIdPartition(topic.topic_id, partition)):
            raise LogClosed(f"{log.topic_partition.directory_name} went offline, and was opened anew.")
        return log

    async def _create(self) -> Topic:
        """The topic; another append may be creating it, too."""
        new_topic = NewTopic(self._spec.name, self._spec.partition_count, configs=self._spec.configs)
        (creation,) = await self._controller.create_topics([new_topic], internal=True)
        topic = self._topic()
        if topic is None:
            raise creation.error or RuntimeError(f"{self._spec.name} could not be created")
        return topic


async def _read_all(log: PartitionLog) -> list[Stored]:
    """As `InternalTopic.read`. Others have their turn before each piece and never behind the last, so what it
    gives is what the log holds when it ends.
    """
    found: list[Stored] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        await asyncio.sleep(0)
        # Records may have been deleted meanwhile.
        offset = max(offset, log.log_start_offset)
        data = _read_piece(log, offset)
        if not data:
            # The cleaner leaves no such log: the last batch of each segment that it writes stays. But damaged
            # batches may have been given up at the end, and nothing will ever come in their place.
            break
        for position, header in iterate_headers(data):
            found += [one for one in _stored_in_batch(data, position, header) if one.offset >= offset]
            offset = header.last_offset + 1
    return found


def _read_piece(log: PartitionLog, offset: int) -> bytes:
    """Some whole batches, from the one that holds `offset` or follows it on; nothing behind the last."""
    try:
        return b"".join(log.read(offset, bytes_max=_READ_BYTES).buffers)
    except CorruptBatch as error:
        raise CorruptBatch(f"Offset {offset} cannot be read. {error}") from error


def _stored_in_batch(data: bytes, position: int, header: BatchHeader) -> Iterator[Stored]:
    if header.is_control:
        end = read_marker_batch(data[position : position + header.size_bytes], header)
        if end is not None:
            yield StoredMarker(header.base_offset, header.producer_id, end.commit)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    for record in iterate_records(data, position):
        yield StoredRecord(record.offset, record.key, record.value, producer_id)
