"""ConsumerGroupDescribe (key 69, versions 0 and 1; KIP-848): describes consumer groups and their members.

Each group has its own error. Version 0 lacks the type of a member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.broker.handlers.common.consumer_protocol import require_consumer_groups
from barnabas.broker.handlers.common.group_describe import describe_each, topic_partitions
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.consumer.description import DescribedMember
from barnabas.coordinator.group.description import DescribedTopic
from barnabas.protocol.extended.consumer_group_describe_v1 import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from barnabas.protocol.extended.packed import shares_of_topic
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import TopicName, i8, i32, milliseconds
from barnabas.protocol.record_keys.hash_range import HashRange

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller

_CLASSIC_MEMBER, _CONSUMER_MEMBER = i8(0), i8(1)
_NO_SHARES: Mapping[TopicIdPartition, HashRange] = {}


class Parts(NamedTuple):
    config: BrokerConfig
    metadata: Controller
    groups: Groups


def handle_consumer_group_describe(
    parts: Parts, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Reply:
    groups = describe_each(
        request,
        partial(require_consumer_groups, parts.metadata.image, parts.config),
        parts.groups.consumer.describe,
        DescribedGroup,
        partial(_member, with_shares=request.wants_shares),
    )
    return ConsumerGroupDescribeResponse(throttle_time=milliseconds(0), groups=groups)


def _member(member: DescribedMember, *, with_shares: bool) -> Member:
    shares, target_shares = (member.shares, member.target_shares) if with_shares else (_NO_SHARES, _NO_SHARES)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.member_epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(member.assignment, shares),
        target_assignment=_assignment(member.target_assignment, target_shares),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(topics: Iterable[DescribedTopic], shares: Mapping[TopicIdPartition, HashRange]) -> Assignment:
    def topic(*, topic_id: UUID, topic_name: TopicName, partitions: tuple[i32, ...]) -> TopicPartitions:
        return TopicPartitions(
            topic_id=topic_id,
            topic_name=topic_name,
            partitions=partitions,
            hash_ranges=shares_of_topic(topic_id, partitions, shares),
        )

    return Assignment(topic_partitions=topic_partitions(topics, topic))
