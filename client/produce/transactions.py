"""Transactions, step by step (KIP-98): one process begins a transaction, perhaps another process ends it.

    writer = await transactions.begin("sink-0", timeout_ms=60_000)
    await transactions.add(writer, {"orders": [0]})
    ...                                           # produce as `writer`, see `producer`
    await transactions.end(writer, commit=True)   # any process that has `writer` can do this

A transaction belongs to a transactional id and to one epoch of its producer. `begin` aborts the open
transaction of the id, and fences all writers with an older epoch. The broker aborts a transaction that is
open for longer than its timeout. A commit after that fails without telling the result: `describe` returns it.

Uses the protocol before KIP-890's second part; `protocol.client.producer_apis` explains why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kio.schema.add_partitions_to_txn.v3.response import AddPartitionsToTxnResponse
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse

from barnabas.client.cluster.cluster import TRANSACTION, Cluster
from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.errors import BrokerUnavailableError, broker_error, error_code
from barnabas.client.group.offsets import CommittedOffset, GroupMetadata
from barnabas.client.produce.transaction_ranges import chunks, ranges_request
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.client.individual_apis import COMMIT_RANGES_IN_TRANSACTION
from barnabas.protocol.client.producer_apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    TXN_OFFSET_COMMIT,
)
from barnabas.protocol.client.transaction_states import TransactionState
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended import txn_offset_commit_v4 as extended
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

CONCURRENT_BACKOFF_MS: Final = 20
"""The first pause while the broker completes the id's last transaction, which takes milliseconds."""
ONGOING: Final = "Ongoing"
COMMITTED: Final = frozenset({"PrepareCommit", "CompleteCommit"})
"""The states of a transaction that is committed, or that can only become committed."""


class Writer(NamedTuple):
    """A producer id and its epoch, with its transactional id if it has one."""

    transactional_id: str | None
    producer_id: int
    producer_epoch: int


class Transactions:
    """The transactions of one cluster. Call `close` once; the cluster stays open.

    Every step raises `BrokerError` for a lasting error, such as PRODUCER_FENCED, and `BrokerUnavailableError`
    for a temporary one that lasts too long.
    """

    def __init__(self, cluster: Cluster, retries: Retries | None = None) -> None:
        self._cluster = cluster
        self._retries = retries or Retries(backoff_ms=CONCURRENT_BACKOFF_MS)
        self.coordinators = Coordinators(cluster, self._retries)
        # Connections of its own, because such a commit may wait, and another request would end the wait.
        self._waiting = Coordinators(cluster, self._retries)

    def close(self) -> None:
        self.coordinators.close()
        self._waiting.close()

    async def are_supported(self) -> bool:
        """Whether the brokers support transactions. Raises `BrokerUnavailableError` if none answers."""
        return await self._cluster.supports(END_TXN)

    async def begin(self, transactional_id: str, timeout_ms: int, current: Writer | None = None) -> Writer:
        """Start a new epoch of the id. Aborts the open transaction, if there is one.

        The transaction itself begins with the first partition that is added to it. `current` is the writer
        that begins anew (KIP-360): it raises `ProducerFencedError` if another one has taken over.
        """
        request = InitProducerIdRequest(
            transactional_id=TransactionalId(transactional_id),
            transaction_timeout=milliseconds(timeout_ms),
            producer_id=ProducerId(-1 if current is None else current.producer_id),
            producer_epoch=i16(-1 if current is None else current.producer_epoch),
        )
        response = await self.coordinators.ask(
            transactional_id,
            INIT_PRODUCER_ID,
            request,
            lambda response: response.error_code,
            key_type=TRANSACTION,
        )
        return Writer(transactional_id, response.producer_id, response.producer_epoch)

    async def begin_idempotent(self) -> Writer:
        """A producer without a transactional id: the broker only recognises its batches."""
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
            await patience.pause(
                BrokerUnavailableError(f"The broker assigns no producer id at the moment: {code.name}.")
            )

    async def add(self, writer: Writer, partitions: Mapping[str, Collection[int]]) -> None:
        """Add partitions, by topic, to the transaction; required before records are produced to them."""
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
        self, writer: Writer, group: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Add a group's offsets to the transaction: they become effective when it is committed.

        A `group` that names a member is checked: offsets of a member that was removed are refused.
        """
        await self._add_group(writer, group)
        request = TxnOffsetCommitRequest(
            transactional_id=_id(writer),
            group_id=GroupId(group.group_id),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            generation_id=i32(group.member_epoch),
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=_offsets(offsets),
        )
        await self.coordinators.ask(group.group_id, TXN_OFFSET_COMMIT, request, _worst_offset)

    async def commit_ranges(
        self,
        writer: Writer,
        group: GroupMetadata,
        ranges: Mapping[TopicPartition, Sequence[OffsetRange]],
        timeout_ms: int,
    ) -> None:
        """Add ranges that are committed individually, as `commit_offsets` adds offsets; one call at a time.

        In groups with `individual.commit.order=partition` this returns when the ranges reach the stable
        offset. It raises TRANSACTION_ABORTABLE if they do not before the end of the transaction's timeout.
        """
        await self._add_group(writer, group)
        for chunk in chunks(ranges):
            request = ranges_request(_id(writer), writer.producer_id, writer.producer_epoch, group, chunk)
            await self._waiting.ask(
                group.group_id, COMMIT_RANGES_IN_TRANSACTION, request, _worst_offset, wait_ms=timeout_ms
            )

    async def _add_group(self, writer: Writer, group: GroupMetadata) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=_id(writer),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            group_id=GroupId(group.group_id),
        )
        await self.coordinators.ask(
            _id(writer),
            ADD_OFFSETS_TO_TXN,
            request,
            lambda response: response.error_code,
            key_type=TRANSACTION,
        )

    async def end(self, writer: Writer, *, commit: bool) -> None:
        """Commit or abort. Repeating the same is no error; the opposite is INVALID_TXN_STATE."""
        request = EndTxnRequest(
            transactional_id=_id(writer),
            producer_id=ProducerId(writer.producer_id),
            producer_epoch=i16(writer.producer_epoch),
            committed=commit,
        )
        await self.coordinators.ask(
            _id(writer), END_TXN, request, lambda response: response.error_code, key_type=TRANSACTION
        )

    async def describe(self, transactional_id: str) -> TransactionState | None:
        """The coordinator's state of the id's last transaction; None if it does not know the id."""
        request: Sequence[str] = [transactional_id]
        (state,) = await self.coordinators.ask(
            transactional_id, DESCRIBE_TRANSACTIONS, request, _described, key_type=TRANSACTION
        )
        return state if error_code(state.error_code) is ErrorCode.none else None

    async def open_ids(self, prefix: str) -> list[str]:
        """The transactional ids with this prefix that have an open transaction, from all known brokers.

        Best effort: raises `BrokerUnavailableError` if one broker cannot be asked.
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
            found += [str(transaction.transactional_id) for transaction in response.transaction_states]
        return sorted(transactional_id for transactional_id in found if transactional_id.startswith(prefix))


def _id(writer: Writer) -> TransactionalId:
    assert writer.transactional_id is not None, "a producer without a transactional id has no transactions"
    return TransactionalId(writer.transactional_id)


def _offsets(
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> tuple[TxnOffsetCommitRequestTopic, ...]:
    return tuple(
        TxnOffsetCommitRequestTopic(
            name=TopicName(topic),
            partitions=tuple(
                TxnOffsetCommitRequestPartition(
                    partition_index=i32(index),
                    committed_offset=i64(offsets[TopicPartition(topic, index)].offset),
                    committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                )
                for index in indexes
            ),
        )
        for topic, indexes in indexes_by_topic(offsets).items()
    )


def _worst_added(response: AddPartitionsToTxnResponse) -> ErrorCode:
    topics = response.results_by_topic_v3_and_below
    return _worst(
        partition.partition_error_code for topic in topics for partition in topic.results_by_partition
    )


def _worst_offset(response: TxnOffsetCommitResponse | extended.TxnOffsetCommitResponse) -> ErrorCode:
    return _worst(partition.error_code for topic in response.topics for partition in topic.partitions)


def _worst(codes: Iterable[ErrorCode]) -> ErrorCode:
    """A lasting error if there is one, else any error."""
    errors = [code for code in codes if code is not ErrorCode.none]
    # If one partition is refused, the broker does not attempt the others, so their code is no information.
    telling = [code for code in errors if code is not ErrorCode.operation_not_attempted] or errors
    return min(telling, key=lambda code: code.retriable, default=ErrorCode.none)


def _described(states: Sequence[TransactionState]) -> ErrorCode:
    (state,) = states
    code = error_code(state.error_code)
    return ErrorCode.none if code is ErrorCode.transactional_id_not_found else code
