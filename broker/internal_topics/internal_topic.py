"""An internal topic as a coordinator's log.

The topic is created with its first record, unless it exists, and each partition's log with the partition's
first record. A record that was decided before a log went offline is never appended after the log was
reopened, because the coordinator then begins from the log's records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from barnabas.broker.internal_topics.internal_topics import InternalTopicSpec, ensure_topic
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.replay.interfaces import (
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
from barnabas.runtime.clock import Clock
from barnabas.runtime.logging import get_logger
from barnabas.runtime.metrics import MS_BOUNDS, Histogram
from barnabas.runtime.tasks import Tasks
from barnabas.storage.errors import CorruptBatch, LogClosed, StorageError
from barnabas.storage.log.appended import Append, Appended
from barnabas.storage.log.partition_log import PartitionLog

logger = get_logger("internal_topic")

_READ_BYTES = 32 * 1024
"""Bytes per read: other requests wait while the records of one read are decoded."""


class InternalTopic:
    """Appends to and reads the partitions of one internal topic (`CoordinatorLog`)."""

    def __init__(
        self, spec: InternalTopicSpec, controller: Controller, logs: PartitionLogs, clock: Clock
    ) -> None:
        self._spec = spec
        self._controller = controller
        self._logs = logs
        self._clock = clock
        self._tasks = Tasks()
        self.append_ms = Histogram(MS_BOUNDS)
        """Durations of appends, including failed ones."""
        self.load_ms = Histogram(MS_BOUNDS)
        """Durations of loading a partition."""

    @property
    def name(self) -> str:
        return self._spec.name

    def now_ms(self) -> int:
        """Monotonic."""
        return self._clock.monotonic_ms()

    @property
    def partition_count(self) -> int:
        """The topic's partitions, or those that it would get if it were created now."""
        topic = self._topic()
        return self._spec.partition_count if topic is None else len(topic.partitions)

    def append(
        self,
        partition: int,
        records: list[tuple[bytes, bytes | None]],
        producer: ProducerIdentity | None = None,
    ) -> Append:
        """See `CoordinatorLog.append`. An append to an offline log fails, and reopens the log."""
        keyed: list[KeyValue] = [*records]

        def write(log: PartitionLog) -> Append:
            return log.append_records(keyed, self._clock.wall_ms(), producer=producer)

        return self._write(partition, write)

    def append_marker(self, partition: int, marker: TransactionMarker) -> Append:
        """See `CoordinatorLog.append_marker`; an offline log is reopened as by `append`."""

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

        Waits for the appends under way.
        """
        await self.drained()
        topic = self._topic()
        if topic is None or partition >= len(topic.partitions):
            return []
        return await _read_all(await self._logs.open(topic, partition))

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records below `offset`, if the partition's log is open. The caller does not wait.

        The newer records that replace them are flushed first, so that a power failure cannot lose both.
        """
        log = self._find_log(partition)
        if log is not None:
            self._tasks.start(self._delete_before(log, offset))

    async def drained(self) -> None:
        """Wait for the appends and deletions under way."""
        await self._tasks.drained()

    def _topic(self) -> Topic | None:
        return self._controller.image.topics_by_name.get(self._spec.name)

    def _find_log(self, partition: int) -> PartitionLog | None:
        topic = self._topic()
        return None if topic is None else self._logs.get(topic, partition)

    def _write(self, partition: int, write: Callable[[PartitionLog], Append]) -> Append:
        began_ms = self.now_ms()
        log = self._find_log(partition)
        if log is not None:
            append = write(log)
        else:
            append = self._tasks.run(partial(self._write_first, partition, self.partition_count, write))
        append.when_done(lambda _: self.append_ms.observe(self.now_ms() - began_ms))
        return append

    async def _delete_before(self, log: PartitionLog, offset: int) -> None:
        try:
            await log.flush()
            log.delete_records(offset)
        except (ApiError, StorageError) as error:
            name = log.topic_partition.directory_name
            logger.warning("old records not deleted", log=name, reason=str(error))

    async def _write_first(
        self, partition: int, partition_count: int, write: Callable[[PartitionLog], Append]
    ) -> Appended:
        """Write to a log that is not open yet. `partition_count` is that of the decision."""
        topic = await ensure_topic(self._controller, self._spec)
        if len(topic.partitions) != partition_count:
            # An administrator created the topic first, so the records belong to another partition.
            raise LogClosed(f"{self.name} was created with {len(topic.partitions)} partitions.")
        return await write(await self._open_first(topic, partition))

    async def _open_first(self, topic: Topic, partition: int) -> PartitionLog:
        """The partition's log, if it is opened for the first time.

        The append has waited, so any other log has replaced one that went offline: LogClosed.
        """
        log = await self._logs.open(topic, partition)
        if self._logs.was_replaced(TopicIdPartition(topic.topic_id, partition)):
            raise LogClosed(f"{log.topic_partition.directory_name} went offline, and was opened anew.")
        return log


async def _read_all(log: PartitionLog) -> list[Stored]:
    """All records of the log, as `InternalTopic.read`. Other work runs before each read and never after the
    last one, so the result is the log's content when this returns.
    """
    found: list[Stored] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        await asyncio.sleep(0)
        # Records may have been deleted meanwhile.
        offset = max(offset, log.log_start_offset)
        data = _read_piece(log, offset)
        if not data:
            # The cleaner never causes this: it keeps the last batch of each segment. But damaged batches at
            # the end may have been dropped, and no other batch will take their place.
            break
        for position, header in iterate_headers(data):
            found += [
                record for record in _stored_in_batch(data, position, header) if record.offset >= offset
            ]
            offset = header.last_offset + 1
    return found


def _read_piece(log: PartitionLog, offset: int) -> bytes:
    """Some whole batches, from the one that holds `offset` or comes after it; empty after the last."""
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
