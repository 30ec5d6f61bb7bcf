"""DeleteShareGroupOffsets (key 92, version 0; KIP-932): deletes a share group's state of topics.

The group must have no members; `coordinator.share_group.offsets` has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.delete_share_group_offsets.v0.request import DeleteShareGroupOffsetsRequest
from kio.schema.delete_share_group_offsets.v0.response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.share_version import share_groups_enabled
from barnabas.coordinator.share_group.offsets import DeletedTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller
    groups: Groups


def handle_delete_share_group_offsets(
    parts: Parts, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> Reply:
    if not share_groups_enabled(parts.metadata.image):
        return _refuse(ApiError(ErrorCode.unsupported_version, "The version of API is not supported."))
    names = [topic.topic_name for topic in request.topics]
    return respond_when_done(parts.groups.share.delete_offsets(request.group_id, names), _respond, _refuse)


def _respond(topics: Sequence[DeletedTopic]) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        responses=tuple(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=TopicName(topic.topic_name),
                topic_id=topic.topic_id,
                error_code=topic.error_code,
                error_message=topic.error_message,
            )
            for topic in topics
        ),
    )


def _refuse(error: ApiError) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        throttle_time=milliseconds(0), error_code=error.code, error_message=error.message, responses=()
    )
