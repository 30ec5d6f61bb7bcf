"""The partitions and share-partitions that take part in a transaction (KIP-98, KIP-890).

The client or the broker adds them before the first write or acknowledgement, and each one checks them. Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.coordinator.transaction.transaction import (
    PREPARED,
    Participant,
    Transaction,
    TransactionState,
    with_participants,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity


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
    participants: Collection[Participant],
    client_version: int,
    wall_ms: int,
) -> Transaction | None:
    """The state with these in the transaction; None if all are there. See `check_producer`."""
    known = check_producer(transaction, producer)
    if known.state is TransactionState.ONGOING and all(map(known.has, participants)):
        return None
    return with_participants(known, participants, client_version, wall_ms)


def takes_part(transaction: Transaction | None, producer: ProducerIdentity, participant: Participant) -> bool:
    """Whether the producer may write to the partition, or acknowledge records of the share-partition, now.
    Raises as `check_producer`.
    """
    return check_producer(transaction, producer).has(participant)
