"""ShareGroupDescribe (key 77, version 1; KIP-932): state, epochs and members of share groups, each with its
own error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

from barnabas.broker.handlers.group_operations import authorized_operations
from barnabas.broker.network.dispatch import Reply, RequestContext
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.description import DescribedGroup as GroupDescription
from barnabas.coordinator.share_group.description import DescribedMember
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import GroupId, TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def handle_share_group_describe(
    broker: Broker, context: RequestContext, request: ShareGroupDescribeRequest
) -> Reply:
    operations = authorized_operations(asked_for=request.include_authorized_operations)
    return ShareGroupDescribeResponse(
        throttle_time=milliseconds(0),
        groups=tuple(_describe(broker, group_id, operations) for group_id in request.group_ids),
    )


def _describe(broker: Broker, group_id: str, operations: i32) -> DescribedGroup:
    try:
        require_share_groups(broker.metadata.image)
        group = broker.groups.share.describe(group_id)
    except ApiError as error:
        return DescribedGroup(
            error_code=error.code,
            error_message=error.message,
            group_id=GroupId(group_id),
            group_state="",
            group_epoch=i32(0),
            assignment_epoch=i32(0),
            assignor_name="",
            members=(),
            authorized_operations=authorized_operations(asked_for=False),
        )
    return _described(group, operations)


def _described(group: GroupDescription, operations: i32) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state,
        group_epoch=i32(group.group_epoch),
        assignment_epoch=i32(group.assignment_epoch),
        assignor_name=group.assignor_name,
        members=tuple(map(_member, group.members)),
        authorized_operations=operations,
    )


def _member(member: DescribedMember) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.member_epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        assignment=Assignment(
            topic_partitions=tuple(
                TopicPartitions(
                    topic_id=topic.topic_id,
                    topic_name=TopicName(topic.topic_name),
                    partitions=tuple(map(i32, topic.partitions)),
                )
                for topic in member.assignment
            )
        ),
    )
