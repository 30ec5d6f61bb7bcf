"""Consumer groups as administrators see them: the answers of ConsumerGroupDescribe, before authorization."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.coordinator.consumer.target_assignment import described_assignor
from barnabas.coordinator.group.description import DescribedGroup, DescribedTopic
from barnabas.coordinator.replay.interfaces import TopicCatalog

PROTOCOL_TYPE = "consumer"


class DescribedMember(NamedTuple):
    """A member; deleted topics are left out of its assignments."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str
    assignment: list[DescribedTopic]
    """Its partitions, including those that it has not given up yet."""
    shares: Shares
    """Its shares of these partitions."""
    target_assignment: list[DescribedTopic]
    target_shares: Shares
    is_classic: bool
    """Whether it uses the classic protocol."""


def describe_group(
    group: ConsumerGroup, catalog: TopicCatalog, default_assignor: str
) -> DescribedGroup[DescribedMember]:
    return DescribedGroup(
        group.group_id,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        described_assignor(group.members.values(), default_assignor),
        [_describe_member(group, member, catalog) for member in group.members.values()],
    )


def _describe_member(group: ConsumerGroup, member: ConsumerMember, catalog: TopicCatalog) -> DescribedMember:
    has: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic_id, epochs in partitions.items():
            has.setdefault(topic_id, []).extend(epochs)
    return DescribedMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        sorted(member.subscribed_topic_names),
        member.subscribed_topic_regex,
        _describe_topics(has, catalog),
        member.shares,
        _describe_topics(group.target.get(member.member_id, EMPTY_ASSIGNMENT), catalog),
        group.target_shares.get(member.member_id, NO_SHARES),
        member.classic is not None,
    )


def _describe_topics(
    partitions: Mapping[UUID, Collection[int]], catalog: TopicCatalog
) -> list[DescribedTopic]:
    return [
        DescribedTopic(topic_id, shape.name, tuple(sorted(ones)))
        for topic_id, ones in partitions.items()
        if (shape := catalog.topic_by_id(topic_id)) is not None
    ]
