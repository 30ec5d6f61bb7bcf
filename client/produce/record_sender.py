"""Gathers records into batches, and delivers the batches of each partition one after the other.

A batch is due when it is full, when it has waited for `linger_ms`, or when a caller waits in `flush`. While
one batch of a partition is in flight, its records gather in the next. A batch that may have been written, and
may not, makes the producer id unusable: once no batch is in flight, the producer gets another.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.client.errors import ProduceError
from barnabas.client.produce.batch_delivery import BATCHES_MAX, BatchDelivery
from barnabas.client.produce.buffer_pool import BufferPool
from barnabas.client.produce.partitioner import KeylessTurns
from barnabas.client.produce.producer_options import ProducerSettings
from barnabas.client.produce.record_queue import RecordBatch, RecordMetadata, RecordQueue
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000
_ID_UNUSABLE: Final = frozenset(
    {
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.unknown_producer_id,
        ErrorCode.invalid_producer_epoch,
    }
)
"""The broker's memory of this producer does not fit to its batches."""


class RecordSender:
    """The batches of all partitions. `close` it once."""

    def __init__(
        self,
        delivery: BatchDelivery,
        settings: ProducerSettings,
        turns: KeylessTurns,
        before_delivery: Callable[[RecordQueue], Awaitable[None]],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`before_delivery` is awaited before each batch, and raises an error if it cannot be delivered.

        `on_failure` is called with the error of a batch.
        """
        self.buffer_pool = BufferPool(settings.buffer_bytes)
        self.counts: Counter[str] = Counter()
        self.needs_new_id = False
        """Whether the producer id can be used no more."""
        self._delivery = delivery
        self._settings = settings
        self._turns = turns
        self._before_delivery = before_delivery
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._queues: dict[TopicIdPartition, RecordQueue] = {}
        self._slots = asyncio.Semaphore(BATCHES_MAX)
        self._in_flight_count = 0
        self._landed = asyncio.Event()
        """Set when no batch is in flight."""
        self._landed.set()
        self._flush_count = 0

    @property
    def landed(self) -> asyncio.Event:
        return self._landed

    def add(
        self,
        topic: str,
        partition: TopicIdPartition,
        record: tuple[bytes | None, bytes | None, bytes, int],
        reserved_bytes: int,
        *,
        is_keyless: bool,
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record: key, value, encoded headers and time. Returns the future of its result."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = RecordQueue(topic, partition)
        key, value, headers, timestamp_ms = record
        batch = queue.batches[-1] if queue.batches else None
        if batch is None or batch.size_bytes + reserved_bytes > self._settings.batch_bytes:
            batch = RecordBatch(timestamp_ms, self._loop.time())
            queue.batches.append(batch)
        batch.add(timestamp_ms, key, value, headers)
        batch.reserved_bytes += reserved_bytes
        batch.is_keyless |= is_keyless
        result: asyncio.Future[RecordMetadata] = self._loop.create_future()
        batch.results.append((result, timestamp_ms))
        if self._is_full(queue):
            queue.filled.set()
        if is_keyless and batch.size_bytes + reserved_bytes > self._settings.batch_bytes:
            self._turns.next(topic)
        if queue.task is None:
            queue.task = self._loop.create_task(self._deliver_all(queue))
        return result

    async def flush(self) -> None:
        """Return once all records queued so far are delivered, or have failed."""
        self._flush_count += 1
        try:
            pending = [batch for queue in self._queues.values() for batch in queue.pending]
            for queue in self._queues.values():
                queue.filled.set()
            for batch in pending:
                await batch.done.wait()
        finally:
            self._flush_count -= 1

    def drop(self, error: Exception) -> None:
        """Let the records fail that are not in flight."""
        for queue in self._queues.values():
            for batch in queue.take_all():
                self._finish(batch, error)
            queue.filled.set()

    async def close(self, error: Exception) -> None:
        """Cancel all deliveries; records without a result get the error."""
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.drop(error)

    def _is_full(self, queue: RecordQueue) -> bool:
        batches = queue.batches
        return len(batches) > 1 or batches[0].size_bytes >= self._settings.batch_bytes

    async def _deliver_all(self, queue: RecordQueue) -> None:
        try:
            while queue.batches:
                await self._wait_until_due(queue)
                async with self._slots:
                    if queue.batches:
                        queue.in_flight = self._seal(queue)
                        await self._deliver(queue, queue.in_flight)
                        queue.in_flight = None
        finally:
            queue.in_flight = queue.task = None

    async def _wait_until_due(self, queue: RecordQueue) -> None:
        due_at = queue.batches[0].opened_at + self._settings.linger_ms / _MS_PER_SECOND
        if self._is_full(queue) or self._flush_count:
            return
        queue.filled.clear()
        timer = self._loop.call_at(due_at, queue.filled.set)
        try:
            await queue.filled.wait()
        finally:
            timer.cancel()

    def _seal(self, queue: RecordQueue) -> RecordBatch:
        """Take the first batch. Records without a key go to another partition from now on."""
        batch = queue.batches.popleft()
        if batch.is_keyless and not queue.batches and batch.size_bytes < self._settings.batch_bytes:
            self._turns.next(queue.topic)
        return batch

    async def _deliver(self, queue: RecordQueue, batch: RecordBatch) -> None:
        index = queue.partition.partition
        records = counted(len(batch), "record")
        body = batch.body(self._settings.codec, f"a batch of {records} for {queue.topic}-{index}")
        try:
            await self._before_delivery(queue)
            self._in_flight_count += 1
            self._landed.clear()
            try:
                appended = await self._delivery.deliver(queue.topic, queue.partition, body)
            finally:
                self._in_flight_count -= 1
                if not self._in_flight_count:
                    self._landed.set()
        except asyncio.CancelledError:
            self._finish(batch, ProduceError(ErrorCode.unknown_server_error, queue.topic, index, "closed"))
            raise
        except Exception as error:
            is_refused = isinstance(error, ProduceError) and error.code not in _ID_UNUSABLE
            self.needs_new_id |= not is_refused
            log.warning("Could not write %s: %s", counted(len(batch), "record"), error)
            self._finish(batch, error)
            self._on_failure(error)
            return
        self.counts["record-send-total"] += len(batch)
        self.counts["batch-send-total"] += 1
        batch.succeed(queue.topic, index, appended)
        self.buffer_pool.release(batch.reserved_bytes)

    def _finish(self, batch: RecordBatch, error: Exception) -> None:
        self.counts["record-error-total"] += len(batch)
        batch.fail(error)
        self.buffer_pool.release(batch.reserved_bytes)
