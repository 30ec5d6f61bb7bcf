"""The positions of a share group: the start offsets (SPSO) of its share-partitions, their lag (KIP-932,
KIP-1226), and their end offsets (SPEO), which Barnabas alone tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import Final, NamedTuple

from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.leader_requests import LeaderRequests
from barnabas.client.errors import BrokerError
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.client.admin_apis import DESCRIBE_SHARE_GROUP_OFFSETS
from barnabas.protocol.client.inspection_apis import DESCRIBE_SHARE_RECORDS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.describe_share_records_v0 import DescribeShareRecordsRequest
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64
from barnabas.protocol.record_inspection import FROM_START_OFFSET

_NOT_BEGUN: Final = frozenset({ErrorCode.group_id_not_found, ErrorCode.resource_not_found})
"""The group does not exist yet, or does not read the partition."""


class SharePosition(NamedTuple):
    """The position of a share group in one partition."""

    start_offset: int | None
    """All records before it are done (SPSO); None if the group has not begun to read the partition."""
    lag: int | None
    """The records that are not done, with those that a consumer holds. None if the group has not begun, or
    the broker does not know it (version 0 of the API)."""


async def fetch_positions(coordinators: Coordinators, group_id: str) -> dict[TopicPartition, SharePosition]:
    """The positions in all partitions that the group reads; raises the errors of `fetch_start_offsets`."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group_id), topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    response = await coordinators.ask(group_id, DESCRIBE_SHARE_GROUP_OFFSETS, request, _error)
    return {
        TopicPartition(topic.topic_name, partition.partition_index): SharePosition(
            _known(partition.start_offset), _known(partition.lag)
        )
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
    }


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
    return await _fetch(coordinators, group, _error)


async def fetch_known_partitions(coordinators: Coordinators, group_id: str) -> list[TopicPartition]:
    """The partitions that the group reads, also those that are offline, sorted; none if there is no such
    group.

    Raises the same errors, except those of a partition.
    """
    group = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group_id), topics=None)
    return sorted(await _fetch(coordinators, group, _group_error))


async def _fetch(
    coordinators: Coordinators,
    group: DescribeShareGroupOffsetsRequestGroup,
    error_of: Callable[[DescribeShareGroupOffsetsResponse], ErrorCode],
) -> dict[TopicPartition, int]:
    request = DescribeShareGroupOffsetsRequest(groups=(group,))
    response = await coordinators.ask(group.group_id, DESCRIBE_SHARE_GROUP_OFFSETS, request, error_of)
    return {
        TopicPartition(topic.topic_name, partition.partition_index): partition.start_offset
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
    }


async def fetch_end_offsets(
    leaders: LeaderRequests, group_id: str, partitions: Iterable[TopicIdPartition]
) -> dict[TopicIdPartition, int]:
    """By partition, its end offset, exclusive; -1 if the group has not begun to read it.

    Raises the errors of `LeaderRequests.ask`; `UnsupportedBrokerError` if the broker is not Barnabas.
    """
    return {partition: await _fetch_end_offset(leaders, group_id, partition) for partition in partitions}


async def _fetch_end_offset(leaders: LeaderRequests, group_id: str, partition: TopicIdPartition) -> int:
    request = DescribeShareRecordsRequest(
        group_id=GroupId(group_id),
        topic_id=partition.topic_id,
        partition_index=i32(partition.partition),
        first_offset=i64(FROM_START_OFFSET),
        max_ranges=i32(1),
        include_last_changes=False,
        include_authorized_operations=False,
    )
    try:
        return (await leaders.ask(partition, DESCRIBE_SHARE_RECORDS, request)).end_offset
    except BrokerError as error:
        if error.code in _NOT_BEGUN:
            return -1
        raise


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _error(response: DescribeShareGroupOffsetsResponse) -> ErrorCode:
    """The first error of a group or of a partition."""
    partitions = (
        partition.error_code
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
    )
    return _first_error(chain((_group_error(response),), partitions))


def _group_error(response: DescribeShareGroupOffsetsResponse) -> ErrorCode:
    return _first_error(group.error_code for group in response.groups)


def _first_error(codes: Iterable[ErrorCode]) -> ErrorCode:
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)
