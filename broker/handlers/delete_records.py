"""DeleteRecords (key 21, versions 0 to 2; KIP-107): deletes the records below an offset.

The new log start is durable before the response; the segments are deleted by the next round of retention. The
offset -1 stands for the visible high watermark. An offset above it, or another one below 0, is
OFFSET_OUT_OF_RANGE; one below the log start succeeds and changes nothing. The broker's own topics are
INVALID_TOPIC_EXCEPTION, topics without delete in their cleanup.policy POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

from barnabas.broker.handlers.common.partitions import find_log, find_partition, open_logs
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.primitive import i32, i64, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.broker.network.handler import RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.storage.directory.log_directory import LogDirectory
    from barnabas.storage.directory.record_deletion import Cut, Outcome

_NO_LOW_WATERMARK = -1


class Parts(NamedTuple):
    log_directory: LogDirectory
    metadata: Controller
    effective_config: EffectiveConfig
    node_id: int
    logs: PartitionLogs


async def handle_delete_records(
    parts: Parts, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    names = [
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    opening = open_logs(parts.metadata.image, parts.logs, names)
    if opening is not None:
        await opening
    outcomes = await _delete(parts, request)
    return DeleteRecordsResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _result(partition.partition_index, next(outcomes)) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


async def _delete(parts: Parts, request: DeleteRecordsRequest) -> Iterator[Outcome]:
    """The outcomes of the partitions, in the order of the request."""
    found = [
        _find(parts, topic.name, partition) for topic in request.topics for partition in topic.partitions
    ]
    cuts = [cut for cut in found if not isinstance(cut, ApiError)]
    deleted = iter(await parts.log_directory.delete_records(cuts))
    return (outcome if isinstance(outcome, ApiError) else next(deleted) for outcome in found)


def _find(parts: Parts, topic_name: str, asked: DeleteRecordsPartition) -> Cut | ApiError:
    """The log with the offset to delete below, or the reason why nothing may be deleted."""
    try:
        led = find_partition(parts.metadata.image, parts.node_id, topic_name, asked.partition_index)
        if led.topic.is_internal:
            raise ApiError(ErrorCode.invalid_topic_exception)
        if not parts.effective_config.topic_config(topic_name).delete_enabled:
            raise ApiError(ErrorCode.policy_violation)
        return find_log(parts.logs, led), asked.offset
    except ApiError as error:
        return without_frames(error)


def _result(index: i32, outcome: Outcome) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, int):
        low_watermark, error_code = outcome, ErrorCode.none
    else:
        low_watermark, error_code = _NO_LOW_WATERMARK, outcome.code
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=i64(low_watermark), error_code=error_code
    )
