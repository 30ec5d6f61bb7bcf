"""WriteTxnMarkers (key 27, versions 1 and 2; KIP-98, KIP-664): the ends of transactions, partition by
partition.

The transaction coordinator of this broker writes its markers without it. Administrators use it to abort a
transaction that hangs (`kafka-transactions abort`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.interfaces import TransactionMarker
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.primitive import i32
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.dispatch import RequestContext

_NOT_READY = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


async def handle_write_txn_markers(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=tuple([await _write(broker, one) for one in request.markers]))


async def _write(broker: Broker, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = TransactionMarker(
        ProducerIdentity(asked.producer_id, asked.producer_epoch),
        asked.coordinator_epoch,
        asked.transaction_result,
        asked.transaction_version,
    )
    written = [
        (
            topic.name,
            [(index, _begin(broker, topic.name, index, marker)) for index in topic.partition_indexes],
        )
        for topic in asked.topics
    ]
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=tuple(
            [
                WritableTxnMarkerTopicResult(
                    name=name,
                    partitions=tuple([await _result(index, reply) for index, reply in partitions]),
                )
                for name, partitions in written
            ]
        ),
    )


def _begin(
    broker: Broker, topic_name: str, index: int, marker: TransactionMarker
) -> CoordinatorReply[None] | None:
    """The marker on its way; None if there is no such partition."""
    partition = TopicNamePartition(topic_name, index)
    if min(marker.producer) < 0:
        return _refused("No producer has such an id, or such an epoch.")
    if broker.transactions.markers.topic_of(partition) is None:
        return None
    return broker.transactions.markers.write_marker(partition, marker)


def _refused(message: str) -> CoordinatorReply[None]:
    reply = CoordinatorReply[None]()
    reply.fail(ApiError(ErrorCode.invalid_request, message))
    return reply


async def _result(index: int, reply: CoordinatorReply[None] | None) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(
        partition_index=i32(index),
        error_code=ErrorCode.unknown_topic_or_partition if reply is None else await _error_code(reply),
    )


async def _error_code(reply: CoordinatorReply[None]) -> ErrorCode:
    try:
        await reply
    except (ApiError, StorageError) as error:
        # A transaction coordinator knows these no better than a partition that somebody else leads now.
        return ErrorCode.not_leader_or_follower if error.code in _NOT_READY else error.code
    return ErrorCode.none
