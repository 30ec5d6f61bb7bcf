"""ShareGroupHeartbeat (key 76, version 1; KIP-932): a member joins, stays in or leaves a share group.

`coordinator.share_group` has the rules.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

from barnabas.broker.handlers.common.group_heartbeat import HeartbeatMessages
from barnabas.broker.handlers.common.subscribed_names import check_subscribed_names
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.heartbeat import JOIN_EPOCH, HeartbeatRequest, HeartbeatResult
from barnabas.protocol.errors import ApiError
from barnabas.protocol.primitive import i32
from barnabas.protocol.tuples import maker
from barnabas.runtime.clock import moment
from barnabas.runtime.logging import get_logger

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock


log = get_logger("share_groups")


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    groups: Groups


def _topic_partitions(_: HeartbeatResult, topic_id: UUID, partitions: tuple[i32, ...]) -> TopicPartitions:
    return TopicPartitions(topic_id=topic_id, partitions=partitions)


_MESSAGES = HeartbeatMessages(ShareGroupHeartbeatResponse, Assignment, _topic_partitions)
_new_request = maker(HeartbeatRequest)


def handle_share_group_heartbeat(
    parts: Parts, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> Reply:
    try:
        require_share_groups(parts.metadata.image)
        if request.subscribed_topic_names is not None:
            check_subscribed_names(parts.metadata.image, request.subscribed_topic_names)
    except ApiError as error:
        return _MESSAGES.refuse(error)
    heartbeat = _new_request(
        (
            request.group_id,
            request.member_id,
            request.member_epoch,
            request.rack_id,
            request.subscribed_topic_names,
            context.client_id or "",
            context.client_host,
        )
    )
    reply = parts.groups.share.heartbeat(heartbeat, moment(parts.clock))
    joins = request.member_epoch == JOIN_EPOCH
    respond = partial(_respond_to_join, heartbeat) if joins else _MESSAGES.respond
    return respond_when_done(reply, respond, _MESSAGES.refuse)


def _respond_to_join(heartbeat: HeartbeatRequest, result: HeartbeatResult) -> ShareGroupHeartbeatResponse:
    """The log tells later which program had the member id that an audit names."""
    log.info(
        "a member joins a share group",
        group=heartbeat.group_id,
        member_id=result.member_id,
        client_id=heartbeat.client_id,
        client=heartbeat.client_host,
    )
    return _MESSAGES.respond(result)
