"""Delivers record batches, each once: sequence numbers, retries, the search for the leader (KIP-98).

The caller encodes and compresses a `Body`. The delivery adds the header with the next sequence number of the
partition, by which the broker recognises a batch that was sent twice. A temporary error is retried with the
same sequence number.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.leaders import Leaders
from barnabas.client.cluster.metadata import Leader
from barnabas.client.cluster.topics import TOPIC_GONE_MS
from barnabas.client.errors import (
    BrokerUnavailableError,
    ProduceError,
    TopicGoneError,
    error_code,
)
from barnabas.client.produce.transactions import Writer
from barnabas.client.waiting.patience import Patience, Retries
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
UNKNOWN_OFFSET: Final = -1
"""The offset of a batch that the broker has recognised as a repetition."""

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


class Appended(NamedTuple):
    """The place of a batch in the log."""

    base_offset: int
    """UNKNOWN_OFFSET after a repetition."""
    append_time_ms: int
    """The broker's time; -1 if the topic keeps the producer's."""


class BatchDelivery:
    """Delivers as one `Writer`. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, writer: Writer, retries: Retries | None = None) -> None:
        self.writer = writer
        self._retries = retries or Retries()
        self._leaders = Leaders(cluster)
        self._sequences: dict[TopicIdPartition, int] = {}

    def close(self) -> None:
        """Close the connections; batches in flight may or may not be written."""
        self._leaders.close()

    def become(self, writer: Writer) -> None:
        """Continue as another writer; no batch may be in flight."""
        self.writer = writer
        self._sequences.clear()

    async def deliver(self, topic: str, partition: TopicIdPartition, body: Body) -> Appended:
        """Return when the batch is in the log. One batch of a partition may be in flight.

        Raises `ProduceError`: the batch was not written, and the next one may follow. After
        `BrokerUnavailableError` and `TopicGoneError` it may have been written, so that this writer cannot
        write to the partition any more.
        """
        sequence = self._sequences.get(partition, 0)
        request = self._request(topic, partition, body, sequence)
        patience = self._retries.patience()
        appended: Appended | None = None
        while appended is None:
            appended = await self._send(topic, partition, body, request, patience)
        self._sequences[partition] = (sequence + body.record_count) & _SEQUENCE_MASK
        return appended

    async def _send(
        self,
        topic: str,
        partition: TopicIdPartition,
        body: Body,
        request: ProduceBody,
        patience: Patience,
    ) -> Appended | None:
        """None if the batch is not written. Then this has paused, and the caller may try again."""
        try:
            connection = await self._leaders.connection(partition)
            reply = await connection.start(PRODUCE, request, wait_ms=PRODUCE_TIMEOUT_MS)
        except TopicGoneError as error:
            await patience.pause(error, give_up_ms=TOPIC_GONE_MS)
            return None
        except BrokerUnavailableError as error:
            self._leaders.mark_stale(partition)
            await patience.pause(error)
            return None
        result = _result(reply)
        code = error_code(result.error_code)
        if code in _WRITTEN:
            return Appended(result.base_offset, result.log_append_time_ms)
        if not code.retriable:
            raise ProduceError(code, topic, partition.partition, _reason(result, body))
        leader = None if result.current_leader is None else Leader(*result.current_leader)
        self._leaders.mark_stale(partition, leader, reply.node_endpoints)
        where = f"{topic}-{partition.partition}"
        await patience.pause(
            BrokerUnavailableError(f"{where} accepts no records at the moment: {code.name}.")
        )
        return None

    def _request(self, topic: str, partition: TopicIdPartition, body: Body, sequence: int) -> ProduceBody:
        records = self._sealed(body, sequence)
        parts = [ProducePartition(partition.partition, memoryview(records))]
        transactional_id = self.writer.transactional_id
        return ProduceBody(
            transactional_id, _ACKS_ALL, PRODUCE_TIMEOUT_MS, [ProduceTopic(topic, None, parts)]
        )

    def _sealed(self, body: Body, sequence: int) -> bytes:
        is_transactional = self.writer.transactional_id is not None
        return seal_batch(
            body.records,
            base_offset=0,
            leader_epoch=-1,
            attributes=body.compression | (TRANSACTIONAL_FLAG if is_transactional else 0),
            last_offset_delta=body.record_count - 1,
            base_timestamp_ms=body.base_timestamp_ms,
            max_timestamp_ms=body.max_timestamp_ms,
            producer_id=self.writer.producer_id,
            producer_epoch=self.writer.producer_epoch,
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
    explanation = "; ".join(text for text in (message, *said[:1]) if text) or "the broker gives no reason"
    return f"{body.label} ({len(body.records)} bytes): {explanation}"
