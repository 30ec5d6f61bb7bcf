"""ConsumerGroupDescribe (key 69, versions 0 and 1; KIP-848): describes consumer groups and their members.

Each group has its own error. Version 0 lacks the type of a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

from barnabas.broker.handlers.group_describe import describe_each, topic_partitions
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.consumer.description import DescribedMember
from barnabas.coordinator.metadata.group_version import require_consumer_groups
from barnabas.protocol.primitive import TopicName, i8, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker

_CLASSIC_MEMBER, _CONSUMER_MEMBER = i8(0), i8(1)


def handle_consumer_group_describe(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Reply:
    groups = describe_each(
        broker, request, require_consumer_groups, broker.groups.consumer.describe, DescribedGroup, _member
    )
    return ConsumerGroupDescribeResponse(throttle_time=milliseconds(0), groups=groups)


def _member(member: DescribedMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.member_epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=Assignment(topic_partitions=topic_partitions(member.assignment, TopicPartitions)),
        target_assignment=Assignment(
            topic_partitions=topic_partitions(member.target_assignment, TopicPartitions)
        ),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )
