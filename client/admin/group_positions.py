"""The positions of a group in the partitions that it reads, their lag, and changes of the positions.

The position of a consumer group is its committed offset, and that of a share group its start offset (SPSO).
A group must be empty when its positions are changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from kio.schema.alter_share_group_offsets.v0.request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kio.schema.alter_share_group_offsets.v0.response import AlterShareGroupOffsetsResponse

from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.groups import SHARE
from barnabas.client.cluster.topics import EARLIEST, LATEST
from barnabas.client.errors import UnknownTopicError
from barnabas.client.group.offsets import (
    CommittedOffset,
    GroupMetadata,
    commit_group_offsets,
    fetch_group_offsets,
)
from barnabas.client.group.share_positions import fetch_positions
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.client.admin_apis import ALTER_SHARE_GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64


class GroupPosition(NamedTuple):
    """The position in one partition; None for an offset or a lag that is unknown."""

    offset: int | None
    """The next record to read; for a share group the first one that is not done."""
    end_offset: int | None
    """The end of the log."""
    lag: int | None
    """The records in the log that are not done."""


class Bounds(NamedTuple):
    """The start (inclusive) and the end (exclusive) of a partition's log."""

    start_offset: int
    end_offset: int

    def lag_from(self, offset: int) -> int:
        """The lag of a reader at this position. Below the log start there is nothing left to read."""
        return max(self.end_offset - max(offset, self.start_offset), 0)


async def fetch_group_positions(
    connection: AdminConnection, group_id: str, group_type: str
) -> dict[TopicPartition, GroupPosition]:
    """By partition, sorted, the positions of the group. Partitions of deleted topics have no end.

    Raises `BrokerError` and `BrokerUnavailableError`.
    """
    if group_type == SHARE:
        positions = await fetch_positions(connection.coordinators, group_id)
        bounds = await _bounds_of_present(connection, positions)
        return {
            partition: GroupPosition(
                position.start_offset,
                bounds[partition].end_offset if partition in bounds else None,
                position.lag,
            )
            for partition, position in sorted(positions.items())
        }
    committed = await fetch_group_offsets(connection.coordinators, GroupMetadata(group_id), None)
    bounds = await _bounds_of_present(connection, committed)
    return {
        partition: _position(position.offset, bounds.get(partition))
        for partition, position in sorted(committed.items())
    }


async def set_group_positions(
    connection: AdminConnection, group_id: str, group_type: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """Move the group to these offsets. Raises `BrokerError` and `BrokerUnavailableError`."""
    if group_type == SHARE:
        await _set_start_offsets(connection, group_id, offsets)
    else:
        committed = {partition: CommittedOffset(offset, "") for partition, offset in offsets.items()}
        await commit_group_offsets(connection.coordinators, GroupMetadata(group_id), committed)


async def fetch_bounds(
    connection: AdminConnection, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Bounds]:
    """By partition, the bounds of its log. Raises `UnknownTopicError`, `BrokerError` and others."""
    names = await _by_id(connection, partitions)
    wanted = list(names)
    starts = await connection.topics.offsets(wanted, EARLIEST)
    ends = await connection.topics.offsets(wanted, LATEST)
    return {names[partition]: Bounds(starts[partition] or 0, ends[partition] or 0) for partition in wanted}


async def fetch_offsets_at(
    connection: AdminConnection, partitions: Collection[TopicPartition], timestamp_ms: int
) -> dict[TopicPartition, int | None]:
    """By partition, the offset of the first record that is not older; None if there is none."""
    names = await _by_id(connection, partitions)
    wanted = list(names)
    found = await connection.topics.offsets(wanted, timestamp_ms)
    return {names[partition]: offset for partition, offset in found.items()}


async def _by_id(
    connection: AdminConnection, partitions: Collection[TopicPartition]
) -> dict[TopicIdPartition, TopicPartition]:
    """The partitions by their topics' ids; those that a topic does not have are left out."""
    wanted = set(partitions)
    found = await connection.topics.find(sorted({partition.topic for partition in wanted}))
    return {
        partition: TopicPartition(topic.name, partition.partition)
        for topic in found
        for partition in topic.partitions
        if TopicPartition(topic.name, partition.partition) in wanted
    }


async def _bounds_of_present(
    connection: AdminConnection, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Bounds]:
    """The bounds of the logs that exist."""
    bounds: dict[TopicPartition, Bounds] = {}
    for topic, indexes in indexes_by_topic(partitions).items():
        with suppress(UnknownTopicError):
            bounds |= await fetch_bounds(connection, [TopicPartition(topic, index) for index in indexes])
    return bounds


def _position(offset: int, bounds: Bounds | None) -> GroupPosition:
    if bounds is None:
        return GroupPosition(offset, None, None)
    return GroupPosition(offset, bounds.end_offset, bounds.lag_from(offset))


async def _set_start_offsets(
    connection: AdminConnection, group_id: str, offsets: Mapping[TopicPartition, int]
) -> None:
    request = AlterShareGroupOffsetsRequest(
        group_id=GroupId(group_id),
        topics=tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=TopicName(topic),
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=i32(index), start_offset=i64(offsets[TopicPartition(topic, index)])
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in indexes_by_topic(offsets).items()
        ),
    )
    await connection.coordinators.ask(group_id, ALTER_SHARE_GROUP_OFFSETS, request, _alter_error)


def _alter_error(response: AlterShareGroupOffsetsResponse) -> ErrorCode:
    if response.error_code is not ErrorCode.none:
        return response.error_code
    codes = (partition.error_code for topic in response.responses for partition in topic.partitions)
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)
