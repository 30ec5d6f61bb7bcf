"""AlterShareGroupOffsets (key 91, version 0; KIP-932): sets start offsets of a share group.

The group must have no members; `coordinator.share_group.offsets` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_share_group_offsets.v0.request import AlterShareGroupOffsetsRequest
from kio.schema.alter_share_group_offsets.v0.response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.coordinator.share_group.offsets import AlteredTopic, TopicOffsets
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    groups: Groups


def handle_alter_share_group_offsets(
    parts: Parts, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> Reply:
    if not share_groups_enabled(parts.metadata.image):
        return _refuse(ApiError(ErrorCode.unsupported_version, "The version of API is not supported."))
    topics = [
        TopicOffsets(
            topic.topic_name,
            [(partition.partition_index, partition.start_offset) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    reply = parts.groups.share.alter_offsets(request.group_id, topics, wall_ms=parts.clock.wall_ms())
    return respond_when_done(reply, _respond, _refuse)


def _respond(topics: Sequence[AlteredTopic]) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        responses=tuple(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=TopicName(topic.topic_name),
                topic_id=topic.topic_id,
                partitions=tuple(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=i32(partition.partition),
                        error_code=partition.error_code,
                        error_message=partition.error_message,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


def _refuse(error: ApiError) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        throttle_time=milliseconds(0), error_code=error.code, error_message=error.message, responses=()
    )
