"""OffsetCommit (key 8, versions 2 to 10; KIP-211, KIP-320, KIP-848): what a group has consumed, written down.

Topics that don't exist, and partitions that they don't have, are errors of their own; a refusal of the group
is each other partition's error. Version 10 names topics by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

from kio.schema.offset_commit.v9.request import OffsetCommitRequest as OffsetCommitRequestByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponse as OffsetCommitResponseByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponsePartition as CommittedPartitionByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponseTopic as CommittedTopicByName
from kio.schema.offset_commit.v10.request import OffsetCommitRequest as OffsetCommitRequestById
from kio.schema.offset_commit.v10.response import OffsetCommitResponse as OffsetCommitResponseById
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition as CommittedPartitionById
from kio.schema.offset_commit.v10.response import OffsetCommitResponseTopic as CommittedTopicById

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_BY_ID_FROM = 10
_GROUP_ID_NOT_FOUND_FROM = 9

_Outcomes = Mapping[tuple[int, int], ErrorCode]
"""By the positions of topic and partition in the request."""


class _Place(NamedTuple):
    """An offset's topic and partition, by their positions in the request."""

    topic: int
    partition: int


def handle_offset_commit(
    broker: Broker, context: RequestContext, request: OffsetCommitRequestByName | OffsetCommitRequestById
) -> Reply:
    topics = _topics(broker.metadata.image, context.api_version, request)
    asked_topics: Sequence[Any] = request.topics
    unknown = (
        ErrorCode.unknown_topic_id
        if context.api_version >= _BY_ID_FROM
        else ErrorCode.unknown_topic_or_partition
    )
    places: list[_Place] = []
    offsets: list[OffsetToCommit] = []
    refused: dict[tuple[int, int], ErrorCode] = {}
    for topic_position, (topic, asked) in enumerate(zip(topics, asked_topics, strict=True)):
        for position, one in enumerate(asked.partitions):
            place = _Place(topic_position, position)
            if topic is None:
                refused[place] = unknown
            elif not 0 <= one.partition_index < len(topic.partitions):
                refused[place] = ErrorCode.unknown_topic_or_partition
            else:
                places.append(place)
                offsets.append(
                    OffsetToCommit(
                        topic.name,
                        topic.topic_id,
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata or "",
                    )
                )
    respond = _respond_by_id if context.api_version >= _BY_ID_FROM else _respond_by_name
    if refused and not offsets:
        return respond(request, refused)
    commit = CommitRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id_or_member_epoch,
        offsets,
        tells_not_found=context.api_version >= _GROUP_ID_NOT_FOUND_FROM,
    )
    return respond_when_done(
        broker.groups.offsets.commit(commit, now_ms=broker.clock.monotonic_ms()),
        lambda codes: respond(request, {**refused, **dict(zip(places, codes, strict=True))}),
        lambda error: respond(request, {**refused, **dict.fromkeys(places, error.code)}),
    )


def _topics(
    image: MetadataImage, version: int, request: OffsetCommitRequestByName | OffsetCommitRequestById
) -> list[Topic | None]:
    if version >= _BY_ID_FROM:
        no_id = UUID(int=0)
        by_id = cast("OffsetCommitRequestById", request).topics
        return [image.topics_by_id.get(topic.topic_id or no_id) for topic in by_id]
    return [
        image.topics_by_name.get(topic.name) for topic in cast("OffsetCommitRequestByName", request).topics
    ]


def _respond_by_name(
    request: OffsetCommitRequestByName | OffsetCommitRequestById, outcomes: _Outcomes
) -> OffsetCommitResponseByName:
    topics = cast("OffsetCommitRequestByName", request).topics
    return OffsetCommitResponseByName(
        throttle_time=milliseconds(0),
        topics=tuple(
            CommittedTopicByName(
                name=TopicName(topic.name),
                partitions=tuple(
                    CommittedPartitionByName(
                        partition_index=i32(one.partition_index),
                        error_code=outcomes[topic_position, position],
                    )
                    for position, one in enumerate(topic.partitions)
                ),
            )
            for topic_position, topic in enumerate(topics)
        ),
    )


def _respond_by_id(
    request: OffsetCommitRequestByName | OffsetCommitRequestById, outcomes: _Outcomes
) -> OffsetCommitResponseById:
    topics = cast("OffsetCommitRequestById", request).topics
    return OffsetCommitResponseById(
        throttle_time=milliseconds(0),
        topics=tuple(
            CommittedTopicById(
                topic_id=topic.topic_id,
                partitions=tuple(
                    CommittedPartitionById(
                        partition_index=i32(one.partition_index),
                        error_code=outcomes[topic_position, position],
                    )
                    for position, one in enumerate(topic.partitions)
                ),
            )
            for topic_position, topic in enumerate(topics)
        ),
    )
