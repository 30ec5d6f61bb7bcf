"""DescribeProducers (key 61, version 0; KIP-664): the producers of partitions and their open transactions.

Each partition has its own error: INVALID_TOPIC_EXCEPTION if no topic can have this name,
UNKNOWN_TOPIC_OR_PARTITION if none has it. The broker's own topics are described as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

from barnabas.broker.handlers.common.partitions import answer_with_logs, find_log, find_partition
from barnabas.coordinator.metadata.topic_names import invalid_topic_name
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import ProducerId, i32, i64, milliseconds
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry


class Parts(NamedTuple):
    metadata: Controller
    node_id: int
    logs: PartitionLogs


def handle_describe_producers(
    parts: Parts, context: RequestContext, request: DescribeProducersRequest
) -> Reply:
    names = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    return answer_with_logs(parts.metadata.image, parts.logs, names, partial(_answer, parts, request))


def _answer(parts: Parts, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _one_partition(parts, topic.name, index) for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )


def _one_partition(parts: Parts, topic_name: str, index: i32) -> PartitionResponse:
    try:
        _check_topic(parts.metadata.image, topic_name)
        log = find_log(parts.logs, find_partition(parts.metadata.image, parts.node_id, topic_name, index))
    except (ApiError, StorageError) as error:
        message = error.message if isinstance(error, ApiError) else None
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=message, active_producers=()
        )
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.none,
        error_message=None,
        active_producers=tuple(map(_state, sorted(log.active_producers()))),
    )


def _check_topic(image: MetadataImage, name: str) -> None:
    reason = invalid_topic_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, reason)
    if name not in image.topics_by_name:
        message = "This server does not host this topic-partition."
        raise ApiError(ErrorCode.unknown_topic_or_partition, message)


def _state(producer: ProducerSnapshotEntry) -> ProducerState:
    return ProducerState(
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=i32(producer.producer_epoch),
        last_sequence=i32(producer.last_sequence),
        last_timestamp=i64(producer.timestamp_ms),
        coordinator_epoch=i32(producer.coordinator_epoch),
        current_txn_start_offset=i64(producer.transaction_first_offset),
    )
