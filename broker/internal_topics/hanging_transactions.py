"""Hanging transactions in the log of a partition: consumers of committed records stop before them.

Each log that is opened with open transactions is examined once. If the coordinator has the transaction open
too, the coordinator ends it. If not, and `__transaction_state` still names its outcome, its marker is written
now. Any other transaction is logged and left to an administrator, who aborts it with `kafka-transactions
abort`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.transaction_markers import TransactionMarkers
from barnabas.coordinator.replay.interfaces import StoredMarker, TransactionMarker
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.named_outcome import (
    HangingTransaction,
    is_held_open,
    named_outcome,
)
from barnabas.coordinator.transaction.record_factory import decode_record
from barnabas.coordinator.transaction.transaction import PREPARED, Transaction
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import TopicNamePartition
from barnabas.protocol.record_batch import HEADER_BYTES, read_header
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog

logger = get_logger("transactions")


class _Open(NamedTuple):
    """An open transaction in a log, which begins at `first_offset`."""

    log: PartitionLog
    partition: TopicNamePartition
    producer_id: int
    first_offset: int


class HangingTransactions:
    """Examines the logs that were opened, once the coordinator has loaded all of its transactions."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        topic: InternalTopic,
        markers: TransactionMarkers,
        *,
        own_epoch: int,
    ) -> None:
        """`topic` is `__transaction_state`, `own_epoch` that of this node's coordinator."""
        self._coordinator = coordinator
        self._topic = topic
        self._markers = markers
        self._own_epoch = own_epoch
        self._waiting: dict[TopicNamePartition, PartitionLog] = {}
        self._examining: asyncio.Task[None] | None = None

    def log_opened(self, partition: TopicNamePartition, log: PartitionLog) -> None:
        """The log was opened, and serves from now on."""
        if log.open_transactions():
            self._waiting[partition] = log
            self.examine()

    def examine(self) -> None:
        """Examine the logs that wait, if the coordinator has loaded all partitions."""
        if self._waiting and self._examining is None and self._coordinator.is_loaded:
            self._examining = asyncio.get_running_loop().create_task(self._examine_all())

    async def close(self) -> None:
        """Examine no other log, and wait for the one under way."""
        self._waiting.clear()
        if self._examining is not None:
            await asyncio.wait([self._examining])

    async def _examine_all(self) -> None:
        try:
            while self._waiting and self._coordinator.is_loaded:
                partition, log = self._waiting.popitem()
                for producer_id, first_offset in log.open_transactions():
                    with suppress(StorageError):
                        await self._examine(_Open(log, partition, producer_id, first_offset))
        finally:
            self._examining = None

    async def _examine(self, opened: _Open) -> None:
        """StorageError if the log cannot be read: it is examined again when it is reopened."""
        known = self._coordinator.of_producer(opened.producer_id)
        if known is not None and self._is_ended_by_coordinator(opened, known):
            return
        decision = None if known is None else await self._find_decision(opened, known.transactional_id)
        if not self._is_as_before(opened, known):
            return
        if decision is None:
            _report(opened, known)
        else:
            await self._end(opened, decision)

    def _is_ended_by_coordinator(self, opened: _Open, known: Transaction) -> bool:
        """Whether the coordinator has the same transaction open. An older epoch is another one."""
        entry = opened.log.producer(opened.producer_id)
        if entry is None or not is_held_open(known, opened.partition):
            return False
        return known.state in PREPARED or entry.producer_epoch == known.producer_epoch

    async def _find_decision(self, opened: _Open, transactional_id: str) -> Transaction | None:
        hanging = self._describe(opened)
        return None if hanging is None else named_outcome(await self._history(transactional_id), hanging)

    def _describe(self, opened: _Open) -> HangingTransaction | None:
        """The transaction's epochs; None if its first batch was deleted."""
        entry = opened.log.producer(opened.producer_id)
        if entry is None or opened.first_offset < opened.log.log_start_offset:
            return None
        first = opened.log.read(opened.first_offset, bytes_max=HEADER_BYTES)
        if not first.buffers:
            return None
        return HangingTransaction(
            opened.partition,
            opened.producer_id,
            read_header(first.buffers[0]).producer_epoch,
            entry.producer_epoch,
            has_refused_markers=entry.coordinator_epoch > self._own_epoch,
        )

    async def _history(self, transactional_id: str) -> list[Transaction]:
        """The states of one transactional id in the log, oldest first."""
        history: list[Transaction] = []
        for stored in await self._topic.read(self._coordinator.partition_of(transactional_id)):
            if isinstance(stored, StoredMarker) or stored.key is None:
                continue
            with suppress(RecordFormatError):
                record = decode_record(stored.key, stored.value)
                if record is not None and record[0] == transactional_id and record[1] is not None:
                    history.append(record[1])
        return history

    def _is_as_before(self, opened: _Open, known: Transaction | None) -> bool:
        """Whether the log and the coordinator are unchanged since the records were read."""
        is_open = (opened.producer_id, opened.first_offset) in opened.log.open_transactions()
        return is_open and self._coordinator.of_producer(opened.producer_id) is known

    async def _end(self, opened: _Open, decision: Transaction) -> None:
        marker = TransactionMarker(
            decision.producer, self._own_epoch, decision.commits, decision.client_version
        )
        written = self._markers.write_marker(opened.partition, marker)
        try:
            await written
        except (ApiError, StorageError) as error:
            logger.error("hanging transaction not ended", **_names(opened), reason=str(error))
        else:
            logger.warning(
                "hanging transaction ended as its coordinator had decided",
                **_names(opened),
                transactional_id=decision.transactional_id,
                outcome="commit" if decision.commits else "abort",
            )


def _report(opened: _Open, known: Transaction | None) -> None:
    topic, partition = opened.partition
    logger.error(
        "transaction hangs: consumers of committed records stop before it",
        **_names(opened),
        transactional_id=None if known is None else known.transactional_id,
        remedy="if its producer is gone, run `kafka-transactions.sh abort "
        f"--topic {topic} --partition {partition} --start-offset {opened.first_offset}`",
    )


def _names(opened: _Open) -> dict[str, str | int]:
    topic, partition = opened.partition
    return {
        "topic": topic,
        "partition": partition,
        "offset": opened.first_offset,
        "producer_id": opened.producer_id,
    }
