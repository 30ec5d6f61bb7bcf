"""ShareGroupDescribe (key 77, version 1; KIP-932): describes share groups and their members.

Each group has its own error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

from barnabas.broker.handlers.common.group_describe import describe_each, topic_partitions
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.coordinator.share_group.description import DescribedMember
from barnabas.protocol.primitive import TopicName, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller


class Parts(NamedTuple):
    metadata: Controller
    groups: Groups


def handle_share_group_describe(
    parts: Parts, context: RequestContext, request: ShareGroupDescribeRequest
) -> Reply:
    groups = describe_each(
        request,
        partial(require_share_groups, parts.metadata.image),
        parts.groups.share.describe,
        DescribedGroup,
        _member,
    )
    return ShareGroupDescribeResponse(throttle_time=milliseconds(0), groups=groups)


def _member(member: DescribedMember) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.member_epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        assignment=Assignment(topic_partitions=topic_partitions(member.assignment, TopicPartitions)),
    )
