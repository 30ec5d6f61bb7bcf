"""A producer of records, for asyncio: idempotent, in order for each partition, optionally transactional.

    async with Producer("127.0.0.1:9092") as producer:
        sent = await producer.send("orders", b"one", key=b"k")   # waits for room in the buffer
        metadata = await sent                                    # waits until it is in the log

Works with Barnabas and with Apache Kafka (KIP-98, KIP-480). This file is the public interface; `produce` has
the parts behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Unpack

from barnabas.client.cluster.async_client import AsyncClient
from barnabas.client.cluster.opening import find_cluster, new_cluster, retries_of
from barnabas.client.cluster.topics import Topic
from barnabas.client.errors import (
    ConsumerClosedError,
    ConsumerError,
    MisuseError,
)
from barnabas.client.group.offsets import GroupMetadata, OffsetToCommit, with_metadata
from barnabas.client.group.ranges import TakenRanges
from barnabas.client.network.address import parse_bootstrap
from barnabas.client.produce.batch_delivery import BatchDelivery
from barnabas.client.produce.open_batch import NO_HEADERS
from barnabas.client.produce.partitioner import KeylessTurns, partition_of_key
from barnabas.client.produce.producer_options import ProducerOptions, producer_settings_of
from barnabas.client.produce.producer_transaction import Phase, ProducerTransaction
from barnabas.client.produce.record_queue import RecordMetadata, RecordQueue
from barnabas.client.produce.record_sender import RecordSender
from barnabas.client.produce.topic_cache import TopicCache
from barnabas.client.produce.transactions import Transactions, Writer
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.record import ClaimedRecord
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.loop_turn import LoopTurn
from barnabas.protocol.counted import counted
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Header, encode_headers

log = logging.getLogger(__name__)

RECORD_OVERHEAD_BYTES: Final = 70
"""The memory that a record uses beside its key, value and headers: at least its part of a batch's header."""

_MS_PER_SECOND: Final = 1000


class Producer(AsyncClient):
    """Enter it with `async with`, or call `start` and `close`. Any number of tasks may use it."""

    def __init__(self, bootstrap: str | Sequence[str], **options: Unpack[ProducerOptions]) -> None:
        """`bootstrap` is `host:port`, or several; `options` are those of `ProducerSettings`."""
        self._settings = settings = producer_settings_of(options)
        self._bootstrap = parse_bootstrap(bootstrap)
        self._cluster = new_cluster(self._bootstrap, settings)
        self._turns = KeylessTurns(int(settings.random() * 0x7FFFFFFF))
        self._sender: RecordSender | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Find the cluster, and get a producer id. A transactional producer then needs `init_transactions`.

        Raises `BrokerUnavailableError` if no broker answers within `connect_timeout_ms`, `SecurityError` if
        TLS or SASL fail, and `BrokerError`.
        """
        if self._sender is not None or self._is_closed:
            raise MisuseError("A producer can be started only once.")
        settings = self._settings
        retries = retries_of(settings, give_up_ms=settings.delivery_timeout_ms)
        self._transactions = Transactions(self._cluster)
        # A cluster of its own, because a view keeps only the leaders of the topics asked for last.
        topics_of = new_cluster(self._bootstrap, settings)
        self._topics = TopicCache(topics_of, retries, settings.metadata_max_age_ms)
        try:
            await find_cluster(self._cluster, settings)
            writer = Writer(settings.transactional_id, -1, -1)
            if settings.transactional_id is None:
                writer = await self._transactions.begin_idempotent()
        except BaseException:
            self._is_closed = True
            self._close_connections()
            raise
        self._delivery = BatchDelivery(self._cluster, writer, retries)
        self._transaction = ProducerTransaction(self._transactions, self._delivery, settings)
        self._renewing = asyncio.Lock()
        self._turn = LoopTurn()
        self._sender = RecordSender(
            self._delivery, settings, self._turns, self._before_delivery, self._note_failure
        )

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Deliver the records, abort an open transaction, and close the connections.

        Records that are not delivered after `timeout_ms`, or the option `close_timeout_ms`, fail with
        `ConsumerClosedError`. Closing twice does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        sender = self._sender
        if sender is None:
            return
        timeout_ms = self._settings.close_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / _MS_PER_SECOND):
                if self._transaction.phase in {Phase.OPEN, Phase.FAILED}:
                    await self._abort(sender)
                else:
                    await sender.flush()
        except (TimeoutError, ConsumerError) as error:
            log.warning("The producer is closed before all its work was done: %r", error)
        finally:
            await sender.close(ConsumerClosedError("The producer is closed."))
            self._delivery.close()
            self._close_connections()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Iterable[Header] = (),
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record, waiting for room in the buffer. Await the result for its place in the log.

        Without a `partition` the key chooses it, as Java's producer does; records without a key fill one
        partition's batch after the other. The result raises `ProduceError` if the broker refuses the record,
        `BrokerUnavailableError` after `delivery_timeout_ms`, and `TopicGoneError`. This method raises
        `UnknownTopicError`, `MisuseError`, `TransactionAbortedError`, `ProducerFencedError`, and
        `ConsumerClosedError` after `close`.
        """
        sender = self._entered()
        self._check_transaction()
        found = await self._topics.find(topic)
        encoded_headers = _encoded(headers)
        size_bytes = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"") + len(encoded_headers)
        await sender.buffer_pool.acquire(size_bytes)
        try:
            if self._turn.is_over():
                await asyncio.sleep(0)
            self._entered()
            self._check_transaction()
            index = self._partition(found, key, partition)
            time_ms = self._settings.wall_ms() if timestamp_ms is None else timestamp_ms
            return sender.add(
                topic,
                TopicIdPartition(found.topic_id, index),
                (key, value, encoded_headers, time_ms),
                size_bytes,
                is_keyless=key is None and partition is None,
            )
        except BaseException:
            sender.buffer_pool.release(size_bytes)
            raise

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Iterable[Header] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """`send`, and wait for the result."""
        return await (
            await self.send(
                topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
        )

    async def flush(self) -> None:
        """Return once all records sent so far are in the log, or have failed; their results tell which."""
        await self._entered().flush()

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic. Raises `UnknownTopicError`."""
        self._entered()
        found = await self._topics.find(topic)
        return [TopicPartition(topic, index) for index in range(found.partition_count)]

    def metrics(self) -> dict[str, float]:
        """The counters of this producer; the guide lists their names."""
        sender = self._entered()
        return {
            "buffered-bytes": sender.buffer_pool.used_bytes,
            "record-send-total": 0,
            "record-error-total": 0,
            "batch-send-total": 0,
            **sender.counts,
        }

    async def init_transactions(self) -> None:
        """Register the transactional id, once, before the first transaction.

        Fences the former producer with this id, and aborts its open transaction. Raises `BrokerError` and
        `BrokerUnavailableError`.
        """
        self._transactional()
        await self._transaction.initialise()

    def begin_transaction(self) -> None:
        """All records sent from now on belong to the transaction."""
        self._transactional()
        self._transaction.begin()

    async def commit_transaction(self) -> None:
        """Deliver the records, then commit.

        Raises `TransactionAbortedError` if a record was not delivered: call `abort_transaction`. Raises
        `ProducerFencedError`, and `BrokerUnavailableError` if the answer is missing: call it again.
        """
        sender = self._transactional()
        self._transaction.check_commit()
        await sender.flush()
        await self._transaction.commit()

    async def abort_transaction(self) -> None:
        """Drop the records that are not sent yet, and abort. Raises `ProducerFencedError`."""
        await self._abort(self._transactional())

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetToCommit] | TakenRanges,
        group: GroupMetadata,
    ) -> None:
        """Commit a consumer's offsets with the transaction; `group` is `Consumer.group_metadata()`.

        With individual commits the offsets are the result of `Consumer.take_ranges()`. In groups with
        `individual.commit.order=partition` this waits until the ranges reach the stable offset, and raises
        `TransactionAbortedError` if they do not in time.

        Raises `CommitFailedError` if the consumer has lost its partitions, and the errors of `send`. After an
        error only an abort is possible.
        """
        self._transactional()
        if isinstance(offsets, TakenRanges):
            reader = group._replace(member_epoch=offsets.member_epoch)
            await self._transaction.add_ranges(offsets, reader)
        else:
            await self._transaction.add_offsets(with_metadata(offsets), group)

    async def acknowledge(
        self,
        records: Iterable[ClaimedRecord],
        acknowledge_type: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> None:
        """Acknowledge records of a `ShareConsumer` with the transaction: the commit accepts them, or releases
        or rejects them, and an abort releases them, so that they are delivered again.

        Returns once the broker has recorded it. From then on the records stay locked until the transaction
        ends, even if the consumer is gone. Call it with all records of a batch at once.

        Raises `AcknowledgeError` if a lock has ended before, `UnsupportedBrokerError` if the broker lacks the
        extension, as Apache Kafka does, and the errors of `send`. After an error only an abort is possible.
        """
        self._transactional()
        await self._transaction.add_acknowledgements(list(records), acknowledge_type)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """A transaction around a block: commits at its end, aborts after an exception, which is raised."""
        self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException:
            if self._transaction.phase in {Phase.OPEN, Phase.FAILED}:
                await self.abort_transaction()
            raise

    def _entered(self) -> RecordSender:
        if self._is_closed:
            raise ConsumerClosedError("The producer is closed.")
        if self._sender is None:
            raise MisuseError("The producer is not started.")
        return self._sender

    def _transactional(self) -> RecordSender:
        sender = self._entered()
        if self._settings.transactional_id is None:
            raise MisuseError("Transactions need the option transactional_id.")
        return sender

    def _check_transaction(self) -> None:
        if self._settings.transactional_id is not None:
            self._transaction.check_send()

    def _partition(self, topic: Topic, key: bytes | None, partition: int | None) -> int:
        count = topic.partition_count
        if partition is None:
            return self._turns.current(topic.name, count) if key is None else partition_of_key(key, count)
        if not 0 <= partition < count:
            partitions = counted(count, "partition")
            raise MisuseError(f"{topic.name} has {partitions}, so none with the number {partition}.")
        return partition

    async def _before_delivery(self, queue: RecordQueue) -> None:
        if self._settings.transactional_id is not None:
            await self._transaction.add(TopicPartition(queue.topic, queue.partition.partition))
            return
        sender = self._entered_or_closing()
        if sender.needs_new_id:
            async with self._renewing:
                await sender.landed.wait()
                if sender.needs_new_id:
                    self._delivery.become(await self._transactions.begin_idempotent())
                    sender.needs_new_id = False

    def _entered_or_closing(self) -> RecordSender:
        assert self._sender is not None, "batches come from a sender"
        return self._sender

    def _note_failure(self, error: Exception) -> None:
        self._topics.forget()
        if self._settings.transactional_id is not None:
            self._transaction.note_failure(error)

    async def _abort(self, sender: RecordSender) -> None:
        sender.drop(ConsumerError("The transaction is aborted."))
        await sender.flush()
        await self._transaction.abort(needs_new_epoch=sender.needs_new_id)
        sender.needs_new_id = False

    def _close_connections(self) -> None:
        self._topics.close()
        self._transactions.close()
        self._cluster.close()


def _encoded(headers: Iterable[Header]) -> bytes:
    given = list(headers)
    return encode_headers(given) if given else NO_HEADERS
