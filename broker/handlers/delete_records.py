"""DeleteRecords (key 21): give up the records below an offset (KIP-107).

The log start moves at once and the segments go with the next round of retention. -1 stands for the visible
high watermark; an offset above it or another one below 0 is OFFSET_OUT_OF_RANGE, one below the log start is a
success that changes nothing. The broker's own topics are refused (INVALID_TOPIC_EXCEPTION), and topics
without delete in their cleanup.policy (POLICY_VIOLATION).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.handlers.partitions import (
    answer_with_logs,
    find_log,
    find_partition,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.primitive import i64, milliseconds
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.dispatch import Reply, RequestContext

_NO_LOW_WATERMARK = -1


def handle_delete_records(broker: Broker, context: RequestContext, request: DeleteRecordsRequest) -> Reply:
    return answer_with_logs(broker, _names(request), lambda: _answer(broker, request))


def _names(request: DeleteRecordsRequest) -> Iterator[tuple[str, int]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield topic.name, partition.partition_index


def _answer(broker: Broker, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _one_partition(broker, topic.name, partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _one_partition(
    broker: Broker, topic_name: str, asked: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark, error_code = _delete(broker, topic_name, asked), ErrorCode.none
    except (ApiError, StorageError) as error:
        low_watermark, error_code = _NO_LOW_WATERMARK, error.code
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=i64(low_watermark), error_code=error_code
    )


def _delete(broker: Broker, topic_name: str, asked: DeleteRecordsPartition) -> int:
    """The log start as it is then; raises `ApiError` or `StorageError`."""
    led = find_partition(broker, topic_name, asked.partition_index)
    if led.topic.is_internal:
        raise ApiError(ErrorCode.invalid_topic_exception)
    if not broker.effective_config.topic_config(topic_name).delete_enabled:
        raise ApiError(ErrorCode.policy_violation)
    return find_log(broker, led).delete_records(asked.offset)
