"""InitProducerId with a transactional id: which producer may use the id from now on (KIP-98, KIP-360).

A request without a producer takes the id over: the earlier producer is fenced, and its open transaction is
aborted. A producer that had an error continues by sending its id and epoch; if these are not the newest,
another producer has taken over. Pure.
"""

from __future__ import annotations

from barnabas.coordinator.transaction.transaction import (
    NO_EPOCH,
    PREPARED,
    Transaction,
    for_producer,
    is_exhausted,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity


def check_taking_over(transaction: Transaction, expected: ProducerIdentity | None) -> None:
    """PRODUCER_FENCED for a producer that is not the id's, CONCURRENT_TRANSACTIONS while an end is carried
    out.
    """
    if expected is not None and not _may_be(transaction, expected):
        raise _fenced(transaction)
    if transaction.state in PREPARED:
        message = "The last transaction is being completed."
        raise ApiError(ErrorCode.concurrent_transactions, message)


def needs_new_producer_id(
    transaction: Transaction, expected: ProducerIdentity | None, *, is_uncertain: bool
) -> bool:
    """Whether the producer id has no epoch left for this producer, or `is_uncertain`.

    After a loss of power, a partition's log may have batches with an epoch that the coordinator has lost. If
    a producer got that epoch again, its first batch would be taken for a repetition of these, and be lost.
    """
    is_current = expected is None or expected.producer_epoch == transaction.producer_epoch
    return (transaction.is_exhausted or is_uncertain) and is_current


def initialised(
    transaction: Transaction,
    expected: ProducerIdentity | None,
    timeout_ms: int,
    wall_ms: int,
    *,
    new_producer_id: int | None = None,
) -> Transaction:
    """The id's state for its new producer, with `new_producer_id` if one is needed. PRODUCER_FENCED."""
    epoch = transaction.producer_epoch
    if new_producer_id is not None:
        last_epoch = NO_EPOCH if expected is None else epoch
        return for_producer(
            transaction, ProducerIdentity(new_producer_id, 0), last_epoch, timeout_ms, wall_ms
        )
    if expected is None:
        raised, last_epoch = epoch + 1, NO_EPOCH
    elif epoch in (NO_EPOCH, expected.producer_epoch):
        raised, last_epoch = epoch + 1, epoch
    elif expected.producer_epoch == transaction.last_producer_epoch:
        # A repeated request: its answer was lost. No other producer has come since; it would have left -1.
        raised, last_epoch = epoch, transaction.last_producer_epoch
    else:
        raise _fenced(transaction)
    producer = ProducerIdentity(transaction.producer_id, raised)
    return for_producer(transaction, producer, last_epoch, timeout_ms, wall_ms)


def _may_be(transaction: Transaction, expected: ProducerIdentity) -> bool:
    """Whether the producer can be the id's; the epoch is checked later."""
    if transaction.producer_epoch == NO_EPOCH or expected.producer_id == transaction.producer_id:
        return True
    # Its id was exhausted, and the answer with the new one may have been lost.
    is_previous = expected.producer_id == transaction.previous_producer_id
    return is_previous and is_exhausted(expected.producer_epoch)


def _fenced(transaction: Transaction) -> ApiError:
    return ApiError(
        ErrorCode.producer_fenced, f"Another producer uses the id {transaction.transactional_id} now."
    )
