"""WriteTxnMarkers (key 27, versions 1 and 2; KIP-98, KIP-664, KIP-890): ends transactions in partitions.

The broker's transaction coordinator writes its markers without this API. Administrators use it to abort a
hanging transaction (`kafka-transactions abort`). `client_markers` decides which transactions a client may
end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

from barnabas.broker.handlers.common.partitions import find_log, find_partition, open_logs
from barnabas.broker.internal_topics.client_markers import check_client_marker
from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.primitive import i32
from barnabas.runtime.completion import Completion
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs

_NOT_READY = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
_FORGED = frozenset({ErrorCode.transaction_coordinator_fenced, ErrorCode.invalid_producer_epoch})


class Parts(NamedTuple):
    metadata: Controller
    node_id: int
    logs: PartitionLogs
    transactions: TransactionStateTopic


async def handle_write_txn_markers(
    parts: Parts, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    topics = [topic for marker in request.markers for topic in marker.topics]
    names = [(topic.name, index) for topic in topics for index in topic.partition_indexes]
    opening = open_logs(parts.metadata.image, parts.logs, names)
    if opening is not None:
        await opening
    return WriteTxnMarkersResponse(
        markers=tuple([await _write(parts, context, marker) for marker in request.markers])
    )


async def _write(parts: Parts, context: RequestContext, asked: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = TransactionMarker(
        ProducerIdentity(asked.producer_id, asked.producer_epoch),
        asked.coordinator_epoch,
        asked.transaction_result,
        asked.transaction_version,
    )
    begin = partial(_begin, parts, context, marker)
    written = [
        (topic.name, [(index, begin(topic.name, index)) for index in topic.partition_indexes])
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
    parts: Parts, context: RequestContext, marker: TransactionMarker, topic_name: str, index: int
) -> Completion[None]:
    """The write of the marker, or the error that prevents it."""
    partition = TopicNamePartition(topic_name, index)
    try:
        _check(parts, partition, marker)
    except ApiError as error:
        if error.code in _FORGED:
            _note(parts.transactions, context, marker, partition, error)
        return Completion.failed(error)
    return parts.transactions.markers.forward(partition, marker)


def _note(
    transactions: TransactionStateTopic,
    context: RequestContext,
    marker: TransactionMarker,
    partition: TopicNamePartition,
    error: ApiError,
) -> None:
    transactions.refused_markers.note(
        client=context.client_host,
        client_id=context.client_id,
        topic=partition.topic,
        partition=partition.partition,
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        reason=error.message,
    )


def _check(parts: Parts, partition: TopicNamePartition, marker: TransactionMarker) -> None:
    """Raises `ApiError` if the client may not write this marker."""
    log = find_log(parts.logs, find_partition(parts.metadata.image, parts.node_id, *partition))
    check_client_marker(
        parts.transactions.coordinator,
        parts.metadata.node_epoch,
        log.producer(marker.producer.producer_id),
        partition,
        marker,
        damage=parts.transactions.damage,
    )


async def _result(index: int, reply: Completion[None]) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=i32(index), error_code=await _error_code(reply))


async def _error_code(reply: Completion[None]) -> ErrorCode:
    try:
        await reply
    except (ApiError, StorageError) as error:
        # A transaction coordinator does not know these errors, so they become that of a former leader.
        return ErrorCode.not_leader_or_follower if error.code in _NOT_READY else error.code
    return ErrorCode.none
