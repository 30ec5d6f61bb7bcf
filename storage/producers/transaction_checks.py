"""The checks of a log for transactional batches and markers (KIP-98, KIP-890).

A batch must belong to a transaction that is open in the log, or its coordinator must have confirmed that it
may begin one. So no batch belongs to a transaction that has no coordinator to end it. The epoch of a marker's
coordinator is not checked here: one node has one coordinator, and markers of clients are checked earlier
(`broker.internal_topics.client_markers`). Errors and their order are those of Apache Kafka 4.3.1 (UnifiedLog,
ProducerAppendInfo). Pure; `producer_state` has the entries.
"""

from __future__ import annotations

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, BatchHeader
from barnabas.storage.producers.producer_state import ProducerEntry, check_epoch, check_sequence

_EPOCH_BUMPED_VERSION = 2
"""From this transaction version on, a marker has a newer epoch than the transaction's batches."""
_PRODUCER_EPOCH_MAX = 2**15 - 1


def is_in_transaction(entry: ProducerEntry | None, producer_epoch: int) -> bool:
    """Whether the producer has an open transaction in this epoch."""
    return entry is not None and entry.is_in_transaction and entry.producer_epoch == producer_epoch


def check_produced(
    entry: ProducerEntry | None, header: BatchHeader, *, is_verified: bool, from_zero: bool
) -> None:
    """Raises ApiError unless a client's batch, which is not a duplicate, may be appended.

    `is_verified`: it may begin its transaction here. `from_zero`: an unknown producer must begin its
    transaction with the sequence 0. INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER as `check_sequence`;
    INVALID_TXN_STATE for a transactional batch without an open transaction, or another batch during one.
    """
    is_transactional = header.attributes & TRANSACTIONAL_FLAG
    if is_transactional and not is_in_transaction(entry, header.producer_epoch):
        check_epoch(entry, header.producer_id, header.producer_epoch)
        if not is_verified:
            raise ApiError(
                ErrorCode.invalid_txn_state,
                f"Producer {header.producer_id} has no open transaction to which the batch belongs.",
            )
    check_sequence(entry, header, from_zero=bool(from_zero and is_transactional))
    if not is_transactional and entry is not None and entry.transaction_first_offset >= 0:
        raise ApiError(
            ErrorCode.invalid_txn_state,
            f"Producer {header.producer_id} has an open transaction, and the batch does not belong to it.",
        )


def check_marker(
    entry: ProducerEntry | None, producer: ProducerIdentity, *, transaction_version: int
) -> None:
    """Raises ApiError, INVALID_PRODUCER_EPOCH, if the marker is late."""
    if entry is None:
        return
    if transaction_version >= _EPOCH_BUMPED_VERSION:
        _check_bumped_epoch(entry, producer)
    else:
        check_epoch(entry, *producer)


def _check_bumped_epoch(entry: ProducerEntry, producer: ProducerIdentity) -> None:
    """A marker in the producer's present epoch is allowed as a repetition, if no transaction is open.

    After the last epoch there is no newer one: then a marker in that epoch may also end a transaction.
    """
    producer_id, producer_epoch = producer
    may_repeat = not entry.is_in_transaction or producer_epoch == _PRODUCER_EPOCH_MAX
    if producer_epoch < entry.producer_epoch or (producer_epoch == entry.producer_epoch and not may_repeat):
        raise ApiError(
            ErrorCode.invalid_producer_epoch,
            f"The marker of producer {producer_id} has the epoch {producer_epoch}; "
            f"the last one seen is {entry.producer_epoch}.",
        )
