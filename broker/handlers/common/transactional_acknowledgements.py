"""The acknowledgements of a ShareAcknowledge request that join a producer's transaction (an extension;
docs/decisions/0030-acknowledgements-in-transactions.md).

First the coordinator records that the share-partitions take part in the transaction. Then it is asked again,
immediately before each leader decides, with no wait in between: if the transaction is ended after that, its
outcome comes after the acknowledgement, so that none is left pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.network.handler import RequestContext
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.runtime.completion import AllDone, Completion
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.sessions.acknowledgements import Results, error_result
from barnabas.share.sessions.session import SessionPartition, ShareSession, named_partitions

if TYPE_CHECKING:
    from barnabas.broker.config.group_config import GroupConfigs
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
    from barnabas.runtime.clock import Clock
    from barnabas.share.leader.share_partitions import SharePartitions
    from barnabas.share.sessions.acknowledgements import Acknowledgements

_CLIENT_VERSION = 0
"""Of transaction.version. The request that ends the transaction tells the client's level."""


class TransactionalParts(Protocol):
    """The handler's parts that acknowledgements in a transaction use."""

    @property
    def clock(self) -> Clock: ...
    @property
    def group_configs(self) -> GroupConfigs: ...
    @property
    def share_partitions(self) -> SharePartitions: ...
    @property
    def transactions(self) -> TransactionStateTopic: ...
    @property
    def acknowledgements(self) -> Acknowledgements: ...


def acknowledge_in_transaction(
    parts: TransactionalParts,
    context: RequestContext,
    session: ShareSession,
    request: ShareAcknowledgeBody,
    transaction: AcknowledgingTransaction,
) -> Completion[Results]:
    """The result of each partition. Besides the errors of ordinary acknowledgements:
    INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS and
    COORDINATOR_LOAD_IN_PROGRESS.
    """
    coordinator = parts.transactions.coordinator

    def acknowledge_all() -> Completion[Results]:
        return parts.acknowledgements.take(
            session,
            request.topics,
            parts.group_configs.limits_of(session.key.group_id),
            parts.clock.monotonic_ms(),
            version=context.api_version,
            is_renew_ack=request.is_renew_ack,
            by=partial(_acknowledge, coordinator, transaction),
        )

    topics = [AckTopic(topic_id, _acknowledged(partitions)) for topic_id, partitions in request.topics]
    named = list(named_partitions(session.key.group_id, topics, {}).values())
    led = [partition.key for partition in named if parts.share_partitions.get(partition.key) is not None]
    if not led:
        return acknowledge_all()
    added = coordinator.add_participants(*transaction, led, client_version=_CLIENT_VERSION)
    return AllDone([added]).then_run(
        lambda _: acknowledge_all() if added.error is None else Completion.of(_refused(named, added.error))
    )


def _acknowledged(partitions: Sequence[AckPartition]) -> list[AckPartition]:
    """Those with acknowledgements."""
    return [partition for partition in partitions if partition.acknowledgement_batches]


def _acknowledge(
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
        raise _told(error) from None
    if not takes_part:
        raise ApiError(ErrorCode.invalid_txn_state, "The transaction has ended.")
    return leader.transactions.acknowledge(member_id, batches, transaction.producer)


def _refused(acknowledged: Sequence[SessionPartition], error: Exception) -> Results:
    result = error_result(_told(error) if isinstance(error, ApiError) else error)
    return dict.fromkeys(acknowledged, result)


def _told(error: ApiError) -> ApiError:
    """A fenced producer gets INVALID_PRODUCER_EPOCH, as from TxnOffsetCommit."""
    if error.code is ErrorCode.producer_fenced:
        return ApiError(ErrorCode.invalid_producer_epoch, error.message)
    return error
