"""The state of a transactional id: its producer, and the producer's newest transaction. Values, and the
functions from one to the next.

With transaction.version 2 each end of a transaction raises the producer's epoch, so that a late write never
counts for the next transaction (KIP-890). The last epoch of an id is reserved for that: 32,766 is the last
one that a producer gets, then a new id begins at 0. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeAlias

from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey, TopicNamePartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1

EPOCH_RAISED_FROM: Final = 2
"""The level of `transaction.version`, of a client or the broker, from which on each end raises the epoch."""

Participant: TypeAlias = TopicNamePartition | SharePartitionKey
"""A partition with writes in a transaction, or a share-partition with acknowledgements in it."""

_EPOCH_MAX: Final = 2**15 - 1


class TransactionState(IntEnum):
    """The states, by their numbers in records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def label(self) -> str:
        """The name that clients see, such as `PrepareCommit`."""
        return self.name.title().replace("_", "")


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""Decided; markers are being written."""
AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
"""No transaction is open: the next one may begin, and an id that is unused for too long is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id's state. Times are times of day, in ms."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """-1 before the first producer."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the end of the transaction; -1 if it stays."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last one, for repeated requests; records do not have it."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicNamePartition] = frozenset()
    acknowledgements: frozenset[SharePartitionKey] = frozenset()
    """The share-partitions with acknowledgements in the transaction."""
    started_at_ms: int = NO_TIME
    updated_at_ms: int
    client_version: int = 0
    """The level of `transaction.version` that the client speaks."""

    @property
    def producer(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def participants(self) -> frozenset[Participant]:
        """All that must know the outcome."""
        return self.partitions | self.acknowledgements

    def has(self, participant: Participant) -> bool:
        return participant in self.partitions or participant in self.acknowledgements

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for another producer."""
        return is_exhausted(self.producer_epoch)

    @property
    def commits(self) -> bool:
        """Whether the decision is to commit; only for a decided transaction."""
        assert self.state in PREPARED
        return self.state is TransactionState.PREPARE_COMMIT


def is_exhausted(producer_epoch: int) -> bool:
    """Whether that is the last epoch that a producer gets: one more is reserved, to fence it."""
    return producer_epoch >= _EPOCH_MAX - 1


def new_transaction(transactional_id: str, producer_id: int, timeout_ms: int, wall_ms: int) -> Transaction:
    """A new id, with a producer id that has had no producer yet."""
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        updated_at_ms=wall_ms,
    )


def for_producer(
    before: Transaction, producer: ProducerIdentity, last_epoch: int, timeout_ms: int, wall_ms: int
) -> Transaction:
    """A producer begins to use the id, or continues after an error."""
    return replace(
        before,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        previous_producer_id=before.producer_id,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        acknowledgements=frozenset(),
        started_at_ms=NO_TIME,
        updated_at_ms=wall_ms,
    )


def with_participants(
    before: Transaction, added: Collection[Participant], client_version: int, wall_ms: int
) -> Transaction:
    """More partitions and share-partitions take part; the first ones begin the transaction."""
    return replace(
        before,
        previous_producer_id=before.producer_id,
        state=TransactionState.ONGOING,
        partitions=before.partitions.union(
            participant for participant in added if isinstance(participant, TopicNamePartition)
        ),
        acknowledgements=before.acknowledgements.union(
            participant for participant in added if isinstance(participant, SharePartitionKey)
        ),
        started_at_ms=wall_ms if before.state in AT_REST else before.started_at_ms,
        updated_at_ms=wall_ms,
        client_version=client_version,
    )


def prepared(
    before: Transaction, *, commit: bool, client_version: int, next_producer_id: int, wall_ms: int
) -> Transaction:
    """The transaction is decided. A transaction without writes gets the present time as its beginning,
    because records need one.
    """
    raises = client_version >= EPOCH_RAISED_FROM
    return replace(
        before,
        producer_epoch=_raised(before.producer_epoch) if raises else before.producer_epoch,
        previous_producer_id=before.producer_id,
        next_producer_id=next_producer_id,
        last_producer_epoch=before.producer_epoch if raises else before.last_producer_epoch,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        started_at_ms=wall_ms if before.state in AT_REST else before.started_at_ms,
        updated_at_ms=wall_ms,
        client_version=client_version,
    )


def fenced(
    before: Transaction, *, transaction_version: int, next_producer_id: int, wall_ms: int
) -> Transaction:
    """The open transaction is aborted and its producer fenced: its epoch is raised in any case."""
    if transaction_version < EPOCH_RAISED_FROM:
        before = replace(before, producer_epoch=_raised(before.producer_epoch), last_producer_epoch=NO_EPOCH)
    return prepared(
        before,
        commit=False,
        client_version=transaction_version,
        next_producer_id=next_producer_id,
        wall_ms=wall_ms,
    )


def completed(before: Transaction, wall_ms: int) -> Transaction:
    """Every partition has its marker."""
    rotates = before.client_version >= EPOCH_RAISED_FROM and before.next_producer_id != NO_PRODUCER_ID
    return replace(
        before,
        producer_id=before.next_producer_id if rotates else before.producer_id,
        producer_epoch=0 if rotates else before.producer_epoch,
        previous_producer_id=before.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=TransactionState.COMPLETE_COMMIT if before.commits else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        acknowledgements=frozenset(),
        updated_at_ms=wall_ms,
    )


def _raised(producer_epoch: int) -> int:
    """The next epoch. The last one stays, so that a producer that got it by mistake can still be ended."""
    return min(producer_epoch + 1, _EPOCH_MAX)
