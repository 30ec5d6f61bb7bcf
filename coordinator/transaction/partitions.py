"""The partitions that take part in a transaction: the client or the broker adds them before the first write,
and each write checks them (KIP-98, KIP-890). Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.coordinator.transaction.transaction import (
    PREPARED,
    Transaction,
    TransactionState,
    with_partitions,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition


def check_producer(transaction: Transaction | None, producer: ProducerIdentity) -> Transaction:
    """The id's state, if this is its producer and it may write now.

    INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS while the last transaction is
    completed.
    """
    if transaction is None or transaction.producer_id != producer.producer_id:
        message = "The transactional id has another producer id, or none."
        raise ApiError(ErrorCode.invalid_producer_id_mapping, message)
    if transaction.producer_epoch != producer.producer_epoch:
        message = f"The producer's epoch is {transaction.producer_epoch} now."
        raise ApiError(ErrorCode.producer_fenced, message)
    if transaction.state in PREPARED:
        message = "The last transaction is being completed."
        raise ApiError(ErrorCode.concurrent_transactions, message)
    return transaction


def added(
    transaction: Transaction | None,
    producer: ProducerIdentity,
    partitions: Collection[TopicNamePartition],
    client_version: int,
    wall_ms: int,
) -> Transaction | None:
    """The state with these partitions in the transaction; None if all are there. See `check_producer`."""
    known = check_producer(transaction, producer)
    if known.state is TransactionState.ONGOING and known.partitions.issuperset(partitions):
        return None
    return with_partitions(known, partitions, client_version, wall_ms)


def takes_part(
    transaction: Transaction | None, producer: ProducerIdentity, partition: TopicNamePartition
) -> bool:
    """Whether the producer may write to the partition now. Raises as `check_producer`."""
    return partition in check_producer(transaction, producer).partitions
