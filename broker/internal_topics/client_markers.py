"""The checks of transaction markers from clients (WriteTxnMarkers; KIP-664).

Any client may end a hanging transaction, for example with `kafka-transactions abort`. A client may not end a
transaction that the coordinator holds open, because its producer could then see a commit confirmed that did
not happen. A client may not raise an epoch in a log above the coordinator's, because that would shut the
producer out. One node has no newer coordinator, so a marker with a newer coordinator epoch is forged. A
coordinator epoch that the log has already is accepted: `kafka-transactions abort` sends the epoch from
DescribeProducers.

TRANSACTION_COORDINATOR_FENCED and INVALID_PRODUCER_EPOCH are the errors that Kafka's clients explain to their
users and do not retry.
"""

from __future__ import annotations

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.named_outcome import is_held_open
from barnabas.coordinator.transaction.transaction import Transaction
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicNamePartition
from barnabas.storage.producers.producer_state import ProducerEntry

_NOT_KNOWN = -1


def check_client_marker(
    coordinator: TransactionCoordinator,
    own_epoch: int,
    log_entry: ProducerEntry | None,
    partition: TopicNamePartition,
    marker: TransactionMarker,
    *,
    damage: str | None,
) -> None:
    """Raises ApiError unless the client's marker may be written to the partition.

    `own_epoch` is that of this node's coordinator, `log_entry` the producer in the partition's log, `damage`
    the reason why some transactions are unknown until a person has repaired their topic. INVALID_REQUEST,
    TRANSACTION_COORDINATOR_FENCED, INVALID_PRODUCER_EPOCH; COORDINATOR_LOAD_IN_PROGRESS while the open
    transactions are unknown.
    """
    if min(marker.producer) < 0:
        raise ApiError(ErrorCode.invalid_request, "No producer has such an id, or such an epoch.")
    known = coordinator.of_producer(marker.producer.producer_id)
    if known is not None:
        _check_known_producer(known, log_entry, partition, marker)
    elif damage is not None:
        raise ApiError(
            ErrorCode.transaction_coordinator_fenced,
            "The coordinator cannot tell whether it holds the transaction open. Repair its topic first "
            f"(barnabas log drop-damaged): {damage}",
        )
    elif not coordinator.is_loaded:
        raise ApiError(ErrorCode.coordinator_load_in_progress, "The transactions are being loaded.")
    _check_coordinator_epoch(own_epoch, log_entry, marker)


def _check_known_producer(
    known: Transaction,
    log_entry: ProducerEntry | None,
    partition: TopicNamePartition,
    marker: TransactionMarker,
) -> None:
    if is_held_open(known, partition):
        raise ApiError(
            ErrorCode.transaction_coordinator_fenced,
            f"The coordinator holds the transaction of {known.transactional_id!r} open and ends it itself.",
        )
    log_epoch = _NOT_KNOWN if log_entry is None else log_entry.producer_epoch
    if marker.producer.producer_epoch > max(known.producer_epoch, log_epoch):
        raise ApiError(
            ErrorCode.invalid_producer_epoch,
            f"The producer of {known.transactional_id!r} has the epoch {known.producer_epoch}.",
        )


def _check_coordinator_epoch(
    own_epoch: int, log_entry: ProducerEntry | None, marker: TransactionMarker
) -> None:
    log_epoch = _NOT_KNOWN if log_entry is None else log_entry.coordinator_epoch
    if not log_epoch <= marker.coordinator_epoch <= max(log_epoch, own_epoch):
        raise ApiError(
            ErrorCode.transaction_coordinator_fenced,
            f"The marker names the coordinator epoch {marker.coordinator_epoch}. The coordinator has "
            f"{own_epoch}, the producer's last marker in the log {log_epoch}.",
        )
