"""The offsets from which a share group reads: the start offsets (SPSO) of its share-partitions (KIP-932)."""

from __future__ import annotations

from collections.abc import Collection

from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse

from barnabas.client.coordinators import Coordinators
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.client.admin_apis import DESCRIBE_SHARE_GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId, TopicName, i32


async def fetch_start_offsets(
    coordinators: Coordinators, group_id: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """By partition, its start offset; -1 if the group has not begun to read it.

    Raises `BrokerError`, and `BrokerUnavailableError` for a temporary error that lasts too long.
    """
    group = DescribeShareGroupOffsetsRequestGroup(
        group_id=GroupId(group_id),
        topics=tuple(
            DescribeShareGroupOffsetsRequestTopic(
                topic_name=TopicName(topic), partitions=tuple(map(i32, indexes))
            )
            for topic, indexes in indexes_by_topic(partitions).items()
        ),
    )
    return await _fetch(coordinators, group)


async def fetch_known_partitions(coordinators: Coordinators, group_id: str) -> list[TopicPartition]:
    """The partitions that the group reads, sorted; none if there is no such group. Raises the same errors."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group_id), topics=None)
    return sorted(await _fetch(coordinators, group))


async def _fetch(
    coordinators: Coordinators, group: DescribeShareGroupOffsetsRequestGroup
) -> dict[TopicPartition, int]:
    request = DescribeShareGroupOffsetsRequest(groups=(group,))
    response = await coordinators.ask(group.group_id, DESCRIBE_SHARE_GROUP_OFFSETS, request, _error)
    return {
        TopicPartition(topic.topic_name, one.partition_index): one.start_offset
        for group in response.groups
        for topic in group.topics
        for one in topic.partitions
    }


def _error(response: DescribeShareGroupOffsetsResponse) -> ErrorCode:
    codes = [
        code
        for group in response.groups
        for code in (
            group.error_code,
            *(one.error_code for topic in group.topics for one in topic.partitions),
        )
    ]
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)
