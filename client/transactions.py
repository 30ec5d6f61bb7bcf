"""Transactions, step by step (KIP-98): begun in one process, perhaps ended in another.

    writer = await transactions.begin("sink-0", timeout_ms=60_000)
    await transactions.add(writer, {"orders": [0]})
    ...                                           # produce as `writer`, see `producer`
    await transactions.end(writer, commit=True)   # whoever knows `writer` can do this

A transaction belongs to a transactional id, and in it to one epoch of one producer: beginning anew with the
id aborts what is open, and fences whoever holds an older epoch. The broker aborts what is open for longer
than its timeout, and answers nobody who would commit it then: `describe` tells what became of it.

Speaks the protocol before KIP-890's second part; `protocol.producer_apis` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.cluster import TRANSACTION, Cluster
from barnabas.client.coordinators import Coordinators
from barnabas.client.errors import BrokerUnavailableError, broker_error, error_code
from barnabas.client.group_offsets import CommittedOffset
from barnabas.client.topics import Retries
from barnabas.protocol.decode.transaction_states import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestByName,
    TxnOffsetCommitResponseByName,
    TxnOffsetToCommit,
    TxnTopicToCommitByName,
)
from barnabas.protocol.primitive import (
    GroupId,
    ProducerId,
    TopicName,
    TransactionalId,
    i16,
    i32,
    i64,
    milliseconds,
)
from barnabas.protocol.producer_apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    TXN_OFFSET_COMMIT,
)

CONCURRENT_BACKOFF_MS: Final = 20
"""The first pause while the id's last transaction is being completed, which takes the broker milliseconds."""
ONGOING: Final = "Ongoing"
COMMITTED: Final = frozenset({"PrepareCommit", "CompleteCommit"})
"""The states in which a transaction was committed, or cannot but be."""


class Writer(NamedTuple):
    """Who writes: a producer and its epoch, and its transactional id if it has one."""

    transactional_id: str | None
    producer_id: int
    producer_epoch: int


class Transactions:
    """The transactions of one cluster. `close` it once; the cluster stays open.

    Every step raises `BrokerError` for a refusal that will not pass, such as PRODUCER_FENCED, and
    `BrokerUnavailableError` for one that has not passed in time.
    """

    def __init__(self, cluster: Cluster, retries: Retries | None = None) -> None:
        self._cluster = cluster
        self._retries = retries or Retries(backoff_ms=CONCURRENT_BACKOFF_MS)
        self.coordinators = Coordinators(cluster, self._retries)

    def close(self) -> None:
        self.coordinators.close()

    async def are_spoken(self) -> bool:
        """Whether the brokers have transactions. Raises `BrokerUnavailableError` if none answers."""
        return await self._cluster.speaks(END_TXN)

    async def begin(self, transactional_id: str, timeout_ms: int) -> Writer:
        """A new epoch of the id. Aborts the transaction that is open, if there is one.

        The transaction itself begins with the first partition that is added to it.
        """
        request = InitProducerIdRequest(
            transactional_id=TransactionalId(transactional_id), transaction_timeout=milliseconds(timeout_ms)
        )
        response = await self.coordinators.ask(
            transactional_id, INIT_PRODUCER_ID, request, lambda one: one.error_code, key_type=TRANSACTION
        )
        return Writer(transactional_id, response.producer_id, response.producer_epoch)

    async def begin_idempotent(self) -> Writer:
        """A producer without a transactional id: its batches are told apart, and nothing else."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout=milliseconds(0))
        patience = self._retries.patience()
        while True:
            try:
                response = await self._cluster.ask(INIT_PRODUCER_ID, request)
            except BrokerUnavailableError as error:
                await patience.pause(error)
                continue
            code = response.error_code
            if code is ErrorCode.none:
                return Writer(None, response.producer_id, response.producer_epoch)
            if not code.retriable:
                raise broker_error(code, "a producer id")
            await patience.pause(BrokerUnavailableError(f"There is no producer id now: {code.name}."))

    async def add(self, writer: Writer, partitions: Mapping[str, Collection[int]]) -> None:
        """Take partitions, by topic, into the transaction: to be done before records are produced to them."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=_id(writer),
            v3_and_below_producer_id=ProducerId(writer.producer_id),
            v3_and_below_producer_epoch=i16(writer.producer_epoch),
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(map(i32, sorted(indexes))))
                for topic, indexes in partitions.items()
            ),
        )
        await self.coordinators.ask(
            _id(writer), ADD_PARTITIONS_TO_TXN, request, _worst_added, key_type=TRANSACTION
        )

    async def commit_offsets(
        self, writer: Writer, group_id: str, topic: str, offsets: Mapping[int, CommittedOffset]
    ) -> None:
        """Make offsets of a group part of the transaction: they count once it is committed."""
        added = AddOffsetsToTxnRequest(
            transactional_id=_id(writer),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            group_id=GroupId(group_id),
        )
        await self.coordinators.ask(
            _id(writer), ADD_OFFSETS_TO_TXN, added, lambda one: one.error_code, key_type=TRANSACTION
        )
        request = TxnOffsetCommitRequestByName(
            transactional_id=_id(writer),
            group_id=GroupId(group_id),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            topics=(_offsets(topic, offsets),),
        )
        await self.coordinators.ask(group_id, TXN_OFFSET_COMMIT, request, _worst_offset)

    async def end(self, writer: Writer, *, commit: bool) -> None:
        """Commit or abort. Doing the same again is no error; anything else is INVALID_TXN_STATE."""
        request = EndTxnRequest(
            transactional_id=_id(writer),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            committed=commit,
        )
        await self.coordinators.ask(
            _id(writer), END_TXN, request, lambda one: one.error_code, key_type=TRANSACTION
        )

    async def describe(self, transactional_id: str) -> TransactionState | None:
        """What the coordinator knows of the id's last transaction; None if it knows nothing (any more)."""
        request: Sequence[str] = [transactional_id]
        (state,) = await self.coordinators.ask(
            transactional_id, DESCRIBE_TRANSACTIONS, request, _described, key_type=TRANSACTION
        )
        return state if error_code(state.error_code) is ErrorCode.none else None

    async def open_ids(self, prefix: str) -> list[str]:
        """The transactional ids that begin so and have a transaction open, on all brokers that are known.

        Best effort: raises `BrokerUnavailableError` if one of them cannot be asked.
        """
        await self._cluster.refresh(())
        request = ListTransactionsRequest(state_filters=(ONGOING,), duration_filter=i64(-1))
        found: list[str] = []
        for address in self._cluster.view.brokers.values():
            connection = await self._cluster.open(address)
            try:
                response = await connection.ask(LIST_TRANSACTIONS, request)
            finally:
                connection.close()
            if response.error_code is not ErrorCode.none:
                raise BrokerUnavailableError(
                    f"{address} cannot list its transactions: {response.error_code.name}."
                )
            found += [str(one.transactional_id) for one in response.transaction_states]
        return sorted(one for one in found if one.startswith(prefix))


def _id(writer: Writer) -> TransactionalId:
    assert writer.transactional_id is not None, "a producer without transactions has none to end"
    return TransactionalId(writer.transactional_id)


def _offsets(topic: str, offsets: Mapping[int, CommittedOffset]) -> TxnTopicToCommitByName:
    partitions = tuple(
        TxnOffsetToCommit(
            partition_index=i32(index),
            committed_offset=i64(committed.offset),
            committed_metadata=committed.metadata,
        )
        for index, committed in offsets.items()
    )
    return TxnTopicToCommitByName(name=TopicName(topic), partitions=partitions)


def _worst_added(response: AddPartitionsToTxnResponse) -> ErrorCode:
    topics = response.results_by_topic_v3_and_below
    return _worst(one.partition_error_code for topic in topics for one in topic.results_by_partition)


def _worst_offset(response: TxnOffsetCommitResponseByName) -> ErrorCode:
    return _worst(one.error_code for topic in response.topics for one in topic.partitions)


def _worst(codes: Iterable[ErrorCode]) -> ErrorCode:
    """Of several codes one that will not pass, if there is one, then any error."""
    errors = [code for code in codes if code is not ErrorCode.none]
    # Where one partition is refused, the others are not attempted: that says nothing about them.
    telling = [code for code in errors if code is not ErrorCode.operation_not_attempted] or errors
    return min(telling, key=lambda code: code.retriable, default=ErrorCode.none)


def _described(states: Sequence[TransactionState]) -> ErrorCode:
    (state,) = states
    code = error_code(state.error_code)
    return ErrorCode.none if code is ErrorCode.transactional_id_not_found else code
