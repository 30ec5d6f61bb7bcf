"""OffsetForLeaderEpoch (key 23, versions 2 to 4; KIP-279, KIP-320): the end offset of a leader epoch.

A client that gets an end below its own position knows that records which it has read were lost, for example
by a crash with log.flush=interval. The result is the greatest epoch with records that is not above the
requested one; epoch and offset are -1 if the epoch is unknown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

from barnabas.broker.handlers.common.partitions import answer_with_logs, find_log, find_partition
from barnabas.coordinator.metadata.leader_epoch import check_leader_epoch
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i32, i64, milliseconds
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs

_UNKNOWN = -1


class Parts(NamedTuple):
    metadata: Controller
    node_id: int
    logs: PartitionLogs


def handle_offset_for_leader_epoch(
    parts: Parts, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Reply:
    names = [(topic.topic, partition.partition) for topic in request.topics for partition in topic.partitions]
    return answer_with_logs(parts.metadata.image, parts.logs, names, partial(_answer, parts, request))


def _answer(parts: Parts, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _one_partition(parts, topic.topic, partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _one_partition(parts: Parts, topic_name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        led = find_partition(parts.metadata.image, parts.node_id, topic_name, asked.partition)
        check_leader_epoch(led.partition.leader_epoch, asked.current_leader_epoch)
        leader_epoch, end_offset = find_log(parts.logs, led).end_offset_for_epoch(asked.leader_epoch)
        return _response(asked, ErrorCode.none, leader_epoch, end_offset)
    except (ApiError, StorageError) as error:
        return _response(asked, error.code, _UNKNOWN, _UNKNOWN)


def _response(
    asked: OffsetForLeaderPartition, error_code: ErrorCode, leader_epoch: int, end_offset: int
) -> EpochEndOffset:
    return EpochEndOffset(
        error_code=error_code,
        partition=asked.partition,
        leader_epoch=i32(leader_epoch),
        end_offset=i64(end_offset),
    )
