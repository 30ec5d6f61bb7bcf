"""Writes record batches, each once and in order: an idempotent producer (KIP-98), also for transactions.

    producer = Producer(cluster, writer)
    await producer.write("orders", partition, Body(...))   # returns when there is room for the next
    await producer.flush()                                 # returns when all are in the log

The caller encodes and compresses a `Body`. The producer adds the header with the next sequence number of the
partition, by which the broker recognises a batch that was sent twice. Each partition has at most one batch in
flight, and all partitions together have `BATCHES_MAX`. A temporary error is retried with the same sequence
number. Any other error is raised by the next call, and nothing can be written after it.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import (
    BrokerUnavailableError,
    ProduceError,
    TopicGoneError,
    error_code,
)
from barnabas.client.leaders import Leaders
from barnabas.client.metadata import Leader
from barnabas.client.patience import Patience
from barnabas.client.topics import TOPIC_GONE_MS, Retries
from barnabas.client.transactions import Writer
from barnabas.protocol.client.produce_response import ProduceReply
from barnabas.protocol.client.producer_apis import PRODUCE
from barnabas.protocol.decode.produce import ProduceBody, ProducePartition, ProduceTopic
from barnabas.protocol.encode.produce import ProducePartitionResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, Compression, seal_batch

BATCHES_MAX: Final = 8
"""Batches in flight, each to another partition."""
PRODUCE_TIMEOUT_MS: Final = 30_000
"""How long the leader may wait for its followers."""

_ACKS_ALL: Final = -1
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_WRITTEN: Final = frozenset({ErrorCode.none, ErrorCode.duplicate_sequence_number})
"""The broker already has a batch with this sequence number, so an earlier try has succeeded."""


class Body(NamedTuple):
    """A batch's records, encoded and compressed: the bytes after the header."""

    records: bytes
    compression: Compression
    record_count: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    label: str
    """The name of these records in an error."""


class Producer:
    """Writes as one `Writer`. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, writer: Writer, retries: Retries | None = None) -> None:
        self._cluster = cluster
        self._writer = writer
        self._retries = retries or Retries()
        self._leaders = Leaders(cluster)
        self._room = asyncio.Semaphore(BATCHES_MAX)
        self._turns: dict[TopicIdPartition, asyncio.Lock] = {}
        self._sequences: dict[TopicIdPartition, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: Exception | None = None

    async def write(self, topic: str, partition: TopicIdPartition, body: Body) -> None:
        """Write a batch after the batches already given for the partition.

        Raises `ProduceError`, `TopicGoneError` or `BrokerUnavailableError` for this batch or an earlier one.
        """
        self._raise_error()
        await self._room.acquire()
        if self._error is not None:
            self._room.release()
            raise self._error
        task = asyncio.get_running_loop().create_task(self._deliver(topic, partition, body))
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        await asyncio.sleep(0)

    async def flush(self) -> None:
        """Return once all batches given so far are in the log; raises the errors of `write`."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._raise_error()

    def close(self) -> None:
        """Close the connections; batches in flight may or may not be written."""
        for task in self._tasks:
            task.cancel()
        self._leaders.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _deliver(self, topic: str, partition: TopicIdPartition, body: Body) -> None:
        turn = self._turns.setdefault(partition, asyncio.Lock())
        async with turn:
            # No batch may follow a failed one, because the broker misses its sequence numbers.
            if self._error is not None:
                return
            try:
                await self._deliver_in_turn(topic, partition, body)
            except Exception as error:
                self._error = self._error or error

    async def _deliver_in_turn(self, topic: str, partition: TopicIdPartition, body: Body) -> None:
        sequence = self._sequences.get(partition, 0)
        request = self._request(topic, partition, body, sequence)
        patience = self._retries.patience()
        while not await self._send(topic, partition, body, request, patience):
            pass
        self._sequences[partition] = (sequence + body.record_count) & _SEQUENCE_MASK

    async def _send(
        self,
        topic: str,
        partition: TopicIdPartition,
        body: Body,
        request: ProduceBody,
        patience: Patience,
    ) -> bool:
        """Whether the batch is written. If it is not, this has paused, and the caller may try again."""
        try:
            connection = await self._leaders.connection(partition)
            reply = await connection.start(PRODUCE, request, wait_ms=PRODUCE_TIMEOUT_MS)
        except TopicGoneError as error:
            await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            return False
        except BrokerUnavailableError as error:
            self._leaders.doubt(partition)
            await patience.pause(error)
            return False
        result = _result(reply)
        code = error_code(result.error_code)
        if code in _WRITTEN:
            return True
        if not code.retriable:
            raise ProduceError(code, topic, partition.partition, _reason(result, body))
        leader = None if result.current_leader is None else Leader(*result.current_leader)
        self._leaders.doubt(partition, leader, reply.node_endpoints)
        where = f"{topic}-{partition.partition}"
        await patience.pause(
            BrokerUnavailableError(f"{where} accepts no records at the moment: {code.name}.")
        )
        return False

    def _request(self, topic: str, partition: TopicIdPartition, body: Body, sequence: int) -> ProduceBody:
        records = self._sealed(body, sequence)
        parts = [ProducePartition(partition.partition, memoryview(records))]
        transactional_id = self._writer.transactional_id
        return ProduceBody(
            transactional_id, _ACKS_ALL, PRODUCE_TIMEOUT_MS, [ProduceTopic(topic, None, parts)]
        )

    def _sealed(self, body: Body, sequence: int) -> bytes:
        is_transactional = self._writer.transactional_id is not None
        return seal_batch(
            body.records,
            base_offset=0,
            leader_epoch=-1,
            attributes=body.compression | (TRANSACTIONAL_FLAG if is_transactional else 0),
            last_offset_delta=body.record_count - 1,
            base_timestamp_ms=body.base_timestamp_ms,
            max_timestamp_ms=body.max_timestamp_ms,
            producer_id=self._writer.producer_id,
            producer_epoch=self._writer.producer_epoch,
            base_sequence=sequence,
            record_count=body.record_count,
        )


def _result(reply: ProduceReply) -> ProducePartitionResult:
    ((_, (result,)),) = reply.topics
    return result


def _reason(result: ProducePartitionResult, body: Body) -> str:
    """The label of the batch, and the broker's explanation for the batch or for a record in it."""
    said = [message for _, message in result.record_errors if message]
    message = result.error_message or ""
    explanation = "; ".join(one for one in (message, *said[:1]) if one) or "the broker gives no reason"
    return f"{body.label} ({len(body.records)} bytes): {explanation}"
