"""ShareGroupHeartbeat (key 76, version 1; KIP-932): a member joins, stays or leaves. The rules are the
coordinator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

from barnabas.broker.handlers.subscribed_names import check_subscribed_names
from barnabas.broker.network.dispatch import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.assignor.assignment import Assignment as MemberAssignment
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.heartbeat import HeartbeatRequest, HeartbeatResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def handle_share_group_heartbeat(
    broker: Broker, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> Reply:
    try:
        require_share_groups(broker.metadata.image)
        check_subscribed_names(broker, request.subscribed_topic_names)
    except ApiError as error:
        return _refuse(error)
    heartbeat = HeartbeatRequest(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        request.subscribed_topic_names,
        context.client_id or "",
        context.client_host,
    )
    clock = broker.clock
    reply = broker.groups.share.heartbeat(heartbeat, now_ms=clock.monotonic_ms(), wall_ms=clock.wall_ms())
    return respond_when_done(reply, _respond, _refuse)


def _respond(result: HeartbeatResult) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        member_id=result.member_id,
        member_epoch=i32(result.member_epoch),
        heartbeat_interval=milliseconds(result.heartbeat_interval_ms),
        assignment=None if result.assignment is None else _assignment(result.assignment),
    )


def _assignment(assignment: MemberAssignment) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(i32(index) for index in partitions))
            for topic_id, partitions in assignment.items()
        )
    )


def _refuse(error: ApiError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=error.code,
        error_message=error.message,
        member_epoch=i32(0),
        heartbeat_interval=milliseconds(0),
    )
