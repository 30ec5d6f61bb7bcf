"""DescribeTopicPartitions (key 75, version 0; KIP-966): topics with their partitions, one page at a time.

Topics are sorted by name, each once; an empty array asks for all. A response has at least one partition, at
most response_partition_limit and never more than max.request.partition.size.limit, and a cursor for the next
page. A topic that does not exist is left out of a list of all topics, otherwise it has its error. A cursor
with a topic that is not in the request, or with a partition below 0, is INVALID_REQUEST for every topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_topic_partitions.v0.request import Cursor as RequestCursor
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.describe_topic_partitions.v0.response import Cursor as ResponseCursor
from kio.schema.describe_topic_partitions.v0.response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

from barnabas.broker.handlers.metadata import TOPIC_OPERATIONS
from barnabas.coordinator.metadata.image import MetadataImage, Partition, Topic
from barnabas.coordinator.metadata.topic_names import invalid_topic_name, is_internal
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    config: BrokerConfig
    metadata: Controller


def handle_describe_topic_partitions(
    parts: Parts, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> Reply:
    image, cursor = parts.metadata.image, request.cursor
    asked = {topic.name for topic in request.topics}
    if cursor is not None and ((asked and cursor.topic_name not in asked) or cursor.partition_index < 0):
        return _response([_failed(topic.name, ErrorCode.invalid_request) for topic in request.topics], None)
    names = sorted(asked or image.topics_by_name)
    limit = parts.config.integer("max.request.partition.size.limit")
    return _page(image, names, cursor, max(1, min(limit, request.response_partition_limit)))


def _page(
    image: MetadataImage, names: Iterable[str], cursor: RequestCursor | None, partitions_max: int
) -> DescribeTopicPartitionsResponse:
    start_name, start_index = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if name < start_name:
            continue
        first = start_index if name == start_name else 0
        if partitions_max == 0:
            return _response(topics, ResponseCursor(topic_name=TopicName(name), partition_index=i32(first)))
        topic = image.topics_by_name.get(name)
        if topic is None:
            invalid = invalid_topic_name(name) is not None
            code = ErrorCode.invalid_topic_exception if invalid else ErrorCode.unknown_topic_or_partition
            topics.append(_failed(name, code))
            continue
        partitions = topic.partitions[first : first + partitions_max]
        partitions_max -= len(partitions)
        topics.append(_found(topic, partitions))
        if partitions and partitions[-1].index + 1 < len(topic.partitions):
            next_index = i32(partitions[-1].index + 1)
            return _response(topics, ResponseCursor(topic_name=TopicName(name), partition_index=next_index))
    return _response(topics, None)


def _response(
    topics: Iterable[DescribeTopicPartitionsResponseTopic], next_cursor: ResponseCursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time=milliseconds(0), topics=tuple(topics), next_cursor=next_cursor
    )


def _failed(name: str, error_code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code,
        name=TopicName(name),
        topic_id=None,
        is_internal=is_internal(name),
        partitions=(),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _found(topic: Topic, partitions: Iterable[Partition]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(topic.name),
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(partition.index),
                leader_id=BrokerId(partition.leader),
                leader_epoch=i32(partition.leader_epoch),
                replica_nodes=tuple(map(BrokerId, partition.replicas)),
                isr_nodes=tuple(map(BrokerId, partition.isr)),
                eligible_leader_replicas=(),
                last_known_elr=(),
                offline_replicas=(),
            )
            for partition in partitions
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
