"""ConsumerGroupHeartbeat (key 68, versions 0 and 1; KIP-848): a member joins, stays or leaves. The rules are
the coordinator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from barnabas.broker.handlers.subscribed_names import check_subscribed_names
from barnabas.broker.network.dispatch import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.assignor.assignment import Assignment as MemberAssignment
from barnabas.coordinator.consumer.heartbeat import HeartbeatRequest, HeartbeatResult
from barnabas.coordinator.consumer.reconciliation import Owned
from barnabas.coordinator.metadata.group_version import require_consumer_groups
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import i32, milliseconds, to_milliseconds

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_NAMES_ITSELF_FROM = 1
_NO_ID = UUID(int=0)


def handle_consumer_group_heartbeat(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Reply:
    try:
        require_consumer_groups(broker.metadata.image)
        check_subscribed_names(broker, request.subscribed_topic_names)
    except ApiError as error:
        return _refuse(error)
    heartbeat = HeartbeatRequest(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        to_milliseconds(request.rebalance_timeout),
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        _owned(request),
        context.client_id or "",
        context.client_host,
        names_itself=context.api_version >= _NAMES_ITSELF_FROM,
    )
    reply = broker.groups.consumer.heartbeat(heartbeat, now_ms=broker.clock.monotonic_ms())
    return respond_when_done(reply, _respond, _refuse)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id or _NO_ID: topic.partitions for topic in request.topic_partitions}


def _respond(result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
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
            TopicPartitions(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
            for topic_id, partitions in assignment.items()
        )
    )


def _refuse(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=error.code,
        error_message=error.message,
        member_epoch=i32(0),
        heartbeat_interval=milliseconds(0),
    )
