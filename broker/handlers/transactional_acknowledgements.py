"""The acknowledgements of a ShareAcknowledge request that join a producer's transaction (an extension;
docs/decisions/0030-acknowledgements-in-transactions.md).

First the coordinator records that the share-partitions take part in the transaction. Then it is asked again,
immediately before each leader decides, with no wait in between: if the transaction is ended after that, its
outcome comes after the acknowledgement, so that none is left pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import AllDone, Completion
from barnabas.share.leader.acknowledgements import Results, acknowledge_all, error_result
from barnabas.share.leader.share_partition_leader import SharePartitionLeader

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator

_CLIENT_VERSION = 0
"""Of transaction.version. The request that ends the transaction tells the client's level."""


def acknowledge_in_transaction(
    broker: Broker, transaction: AcknowledgingTransaction, request: ShareAcknowledgeBody, *, version: int
) -> Completion[Results]:
    """The result of each partition. Besides the errors of ordinary acknowledgements:
    INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS and
    COORDINATOR_LOAD_IN_PROGRESS.
    """
    keys = _led(broker, request)
    if not keys:
        return _acknowledge(broker, transaction, request, version)
    added = broker.transactions.coordinator.add_participants(
        *transaction, keys, client_version=_CLIENT_VERSION
    )
    return AllDone([added]).then_run(
        lambda _: (
            _acknowledge(broker, transaction, request, version)
            if added.error is None
            else Completion.of(_refused(request, added.error))
        )
    )


def _acknowledge(
    broker: Broker, transaction: AcknowledgingTransaction, request: ShareAcknowledgeBody, version: int
) -> Completion[Results]:
    return acknowledge_all(
        broker.share_partitions,
        broker.fetch_source.why_not_led,
        request.group_id or "",
        request.member_id or "",
        request.topics,
        version=version,
        is_renew_ack=request.is_renew_ack,
        lock_duration_ms=None,
        acknowledge=partial(_acknowledge_one, broker.transactions.coordinator, transaction),
    )


def _led(broker: Broker, request: ShareAcknowledgeBody) -> list[SharePartitionKey]:
    """The share-partitions to acknowledge in, without those that the broker does not lead."""
    keys = [
        SharePartitionKey(request.group_id or "", topic_id, partition.partition_index)
        for topic_id, partitions in request.topics
        for partition in partitions
        if partition.acknowledgement_batches
    ]
    return [key for key in keys if broker.share_partitions.get(key) is not None]


def _acknowledge_one(
    coordinator: TransactionCoordinator,
    transaction: AcknowledgingTransaction,
    leader: SharePartitionLeader,
    member_id: str,
    batches: Sequence[AckBatch],
    delays: Sequence[ReleaseDelay],
) -> Completion[None]:
    if delays:
        raise ApiError(ErrorCode.invalid_request, "A release in a transaction has no delay of its own.")
    try:
        takes_part = coordinator.takes_part(*transaction, leader.key)
    except ApiError as error:
        raise _told(error) from error
    if not takes_part:
        raise ApiError(ErrorCode.invalid_txn_state, "The transaction has ended.")
    return leader.transactions.acknowledge(member_id, batches, transaction.producer)


def _refused(request: ShareAcknowledgeBody, error: Exception) -> Results:
    result = error_result(_told(error) if isinstance(error, ApiError) else error)
    return {
        TopicIdPartition(topic_id, partition.partition_index): result
        for topic_id, partitions in request.topics
        for partition in partitions
        if partition.acknowledgement_batches
    }


def _told(error: ApiError) -> ApiError:
    """A fenced producer gets INVALID_PRODUCER_EPOCH, as from TxnOffsetCommit."""
    if error.code is ErrorCode.producer_fenced:
        return ApiError(ErrorCode.invalid_producer_epoch, error.message)
    return error
