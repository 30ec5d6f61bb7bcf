"""DescribeShareGroupOffsets (key 90, versions 0 and 1; KIP-932, KIP-1226): start offsets and lag.

An unknown group has no topics and no error, and a partition that the group has not read has start offset and
lag -1, as in Kafka. The start offset is the one in force. Kafka's is one write behind, and until that write
its lag counts records that are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.describe_share_group_offsets.v1.response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.coordinator.share_group.share_group import TopicPartitionSet
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64, milliseconds
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.share.fetch.fetch_source import FetchSource

_NO_ID = UUID(int=0)


class Parts(NamedTuple):
    metadata: Controller
    groups: Groups
    fetch_source: FetchSource


async def handle_describe_share_group_offsets(
    parts: Parts, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        throttle_time=milliseconds(0),
        groups=tuple([await _describe_group(parts, group) for group in request.groups]),
    )


async def _describe_group(
    parts: Parts, group: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    if not share_groups_enabled(parts.metadata.image):
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=GroupId(group.group_id), topics=(), error_code=ErrorCode.unsupported_version
        )
    initialised = parts.groups.share.initialised_partitions(group.group_id)
    asked = (
        _all_topics(initialised)
        if group.topics is None
        else [(t.topic_name, t.partitions) for t in group.topics]
    )
    topics = [
        await _describe_topic(parts, group.group_id, name, indexes, initialised) for name, indexes in asked
    ]
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=GroupId(group.group_id), topics=tuple(topics), error_code=ErrorCode.none
    )


def _all_topics(initialised: Mapping[UUID, TopicPartitionSet]) -> list[tuple[str, Sequence[int]]]:
    return [(topic.topic_name, topic.partitions) for topic in initialised.values()]


async def _describe_topic(
    parts: Parts,
    group_id: str,
    name: str,
    indexes: Sequence[int],
    initialised: Mapping[UUID, TopicPartitionSet],
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = parts.metadata.image.topics_by_name.get(name)
    topic_id = _NO_ID if topic is None else topic.topic_id
    read = initialised[topic_id].partitions if topic_id in initialised else ()
    partitions = [
        await _describe_partition(parts.fetch_source, SharePartitionKey(group_id, topic_id, index))
        if index in read
        else _unread(index)
        for index in indexes
    ]
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=TopicName(name), topic_id=topic_id, partitions=tuple(partitions)
    )


async def _describe_partition(
    fetch_source: FetchSource, key: SharePartitionKey
) -> DescribeShareGroupOffsetsResponsePartition:
    try:
        leader = await fetch_source.load_leader(key)
    except (ApiError, StorageError) as error:
        return _unread(key.partition, error.code, str(error))
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=i32(key.partition),
        start_offset=i64(leader.core.spso),
        leader_epoch=i32(leader.log.leader_epoch),
        lag=i64(leader.lag()),
        error_code=ErrorCode.none,
    )


def _unread(
    index: int, error_code: ErrorCode = ErrorCode.none, message: str | None = None
) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=i32(index),
        start_offset=i64(-1),
        leader_epoch=i32(0),
        lag=i64(-1),
        error_code=error_code,
        error_message=message,
    )
