"""ConsumerGroupHeartbeat (key 68, versions 0 and 1; KIP-848): a member joins, stays in or leaves a group.

`coordinator.consumer` has the rules. Version 0 has no regular expression, and the coordinator chooses the
member id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.handlers.common.consumer_protocol import require_consumer_groups
from barnabas.broker.handlers.common.group_heartbeat import HeartbeatMessages
from barnabas.broker.handlers.common.subscribed_names import check_subscribed_names
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.consumer.heartbeat import HeartbeatRequest, HeartbeatResult
from barnabas.coordinator.consumer.reconciliation import Owned
from barnabas.protocol.errors import ApiError
from barnabas.protocol.extended.consumer_group_heartbeat_v1 import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.extended.packed import shares_of_topic
from barnabas.protocol.primitive import i32, to_milliseconds

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock

_NAMES_ITSELF_FROM = 1
_NO_ID = UUID(int=0)


class Parts(NamedTuple):
    config: BrokerConfig
    clock: Clock
    metadata: Controller
    groups: Groups


def _topic_partitions(
    result: HeartbeatResult, topic_id: UUID, partitions: tuple[i32, ...]
) -> TopicPartitions:
    return TopicPartitions(
        topic_id=topic_id,
        partitions=partitions,
        hash_ranges=shares_of_topic(topic_id, partitions, result.shares),
    )


_MESSAGES = HeartbeatMessages(ConsumerGroupHeartbeatResponse, Assignment, _topic_partitions)


def handle_consumer_group_heartbeat(
    parts: Parts, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Reply:
    try:
        require_consumer_groups(parts.metadata.image, parts.config)
        check_subscribed_names(parts.metadata.image, request.subscribed_topic_names)
    except ApiError as error:
        return _MESSAGES.refuse(error)
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
        individual_commit=request.individual_commit,
    )
    reply = parts.groups.consumer.heartbeat(heartbeat, now_ms=parts.clock.monotonic_ms())
    return respond_when_done(reply, _MESSAGES.respond, _MESSAGES.refuse)


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id or _NO_ID: topic.partitions for topic in request.topic_partitions}
