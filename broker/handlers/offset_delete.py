"""OffsetDelete (key 47, version 0; KIP-496): deletes committed offsets of a group.

A partition that does not exist has an error of its own. With an error of the group the response has no
topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage


class Parts(NamedTuple):
    metadata: Controller
    groups: Groups


def handle_offset_delete(parts: Parts, context: RequestContext, request: OffsetDeleteRequest) -> Reply:
    asked = [
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    known = [key for key in asked if _exists(parts.metadata.image, *key)]
    reply = parts.groups.offsets.delete(request.group_id, known)
    return respond_when_done(
        reply, lambda codes: _respond(request, dict(zip(known, codes, strict=True))), _refuse
    )


def _exists(image: MetadataImage, topic_name: str, partition: int) -> bool:
    topic = image.topics_by_name.get(topic_name)
    return topic is not None and 0 <= partition < len(topic.partitions)


def _respond(
    request: OffsetDeleteRequest, outcomes: Mapping[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=milliseconds(0),
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=TopicName(topic.name),
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=i32(partition.partition_index),
                        error_code=outcomes.get(
                            (topic.name, partition.partition_index), ErrorCode.unknown_topic_or_partition
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _refuse(error: ApiError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code, throttle_time=milliseconds(0), topics=())
