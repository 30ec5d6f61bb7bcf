"""A group's committed offsets, with their metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.client.admin_apis import OFFSET_COMMIT, OFFSET_FETCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId, TopicName, i32, i64


class CommittedOffset(NamedTuple):
    """A committed offset of a group, with the metadata that was committed beside it."""

    offset: int
    metadata: str


OffsetToCommit = int | CommittedOffset
"""The offset of the next record, with or without metadata."""


def with_metadata(
    offsets: Mapping[TopicPartition, OffsetToCommit],
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets, with empty metadata where there is none."""
    return {
        TopicPartition(*partition): offset
        if isinstance(offset, CommittedOffset)
        else CommittedOffset(offset, "")
        for partition, offset in offsets.items()
    }


class GroupMetadata(NamedTuple):
    """A member of a group, as the coordinator checks it when offsets are committed or read."""

    group_id: str
    member_epoch: int = -1
    """-1 for a client that is no member."""
    member_id: str = ""
    instance_id: str | None = None


async def fetch_group_offsets(
    coordinators: Coordinators,
    group: GroupMetadata,
    partitions: Collection[TopicPartition] | None = None,
) -> dict[TopicPartition, CommittedOffset]:
    """By partition, the committed offsets of the group, of all partitions or of these.

    It is empty if the group does not exist. Waits for transactions that are about to commit offsets. Raises
    `BrokerError`, and `BrokerUnavailableError` for a temporary error that lasts too long.
    """
    asked = OffsetFetchRequestGroup(
        group_id=GroupId(group.group_id),
        member_id=group.member_id or None,
        member_epoch=i32(group.member_epoch),
        topics=None if partitions is None else _topics(partitions),
    )
    request = OffsetFetchRequest(groups=(asked,), require_stable=True)
    response = await coordinators.ask(group.group_id, OFFSET_FETCH, request, _fetch_error)
    return {
        TopicPartition(topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.metadata or ""
        )
        for answered in response.groups
        for topic in answered.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


async def commit_group_offsets(
    coordinators: Coordinators, group: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
) -> None:
    """Commit these offsets; raises the errors of `fetch_group_offsets`."""
    request = OffsetCommitRequest(
        group_id=GroupId(group.group_id),
        generation_id_or_member_epoch=i32(group.member_epoch),
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=TopicName(topic),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=i32(index),
                        committed_offset=i64(offsets[TopicPartition(topic, index)].offset),
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in indexes_by_topic(offsets).items()
        ),
    )
    await coordinators.ask(group.group_id, OFFSET_COMMIT, request, _commit_error)


def _topics(partitions: Collection[TopicPartition]) -> tuple[OffsetFetchRequestTopics, ...]:
    return tuple(
        OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=tuple(map(i32, indexes)))
        for topic, indexes in indexes_by_topic(partitions).items()
    )


def _commit_error(response: OffsetCommitResponse) -> ErrorCode:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)


def _fetch_error(response: OffsetFetchResponse) -> ErrorCode:
    for group in response.groups:
        if group.error_code is not ErrorCode.none:
            return group.error_code
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.error_code is not ErrorCode.none:
                    return partition.error_code
    return ErrorCode.none
