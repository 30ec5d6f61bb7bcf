"""A share group's target assignment: the partitions that each member is to read, by the assignor (KIP-932,
"Assignment").

Only initialised partitions are assigned. Members and topics go to the assignor `simple` in the order of
Kafka's hash maps, so that its result is Kafka's for the same group; `load` depends on no order. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from uuid import UUID

from barnabas.coordinator.assignor import load, simple
from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT, Assignment
from barnabas.coordinator.assignor.load import Backlogs
from barnabas.coordinator.assignor.simple import AssignableTopic, MemberSpec
from barnabas.coordinator.group.assignor_order import in_map_order, members_in_map_order
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.share_group.share_group import (
    NO_PARTITIONS,
    ShareGroup,
    ShareGroupMember,
    TopicPartitionSet,
)


def compute_target(
    group: ShareGroup,
    updated: ShareGroupMember,
    subscriber_counts: Mapping[str, int],
    initialised: Mapping[UUID, TopicPartitionSet],
    catalog: TopicCatalog,
    backlogs: Backlogs | None,
) -> dict[str, Assignment]:
    """The new target of every member, `updated` among them (it may be new), in hash map order.

    With backlogs it is that of the assignor `load`, without that of `simple`.
    """
    members = {**group.members, updated.member_id: updated}
    member_ids = members_in_map_order(group.members, updated.member_id)
    specs = {
        member_id: MemberSpec(
            members[member_id].subscribed_topic_names, group.target.get(member_id, EMPTY_ASSIGNMENT)
        )
        for member_id in member_ids
    }
    topics = _assignable_topics(subscriber_counts, initialised, catalog)
    if backlogs is not None:
        assigned = load.assign(specs, topics, backlogs)
    else:
        homogeneous = all(count == len(members) for count in subscriber_counts.values())
        assigned = simple.assign(specs, topics, homogeneous=homogeneous)
    return {member_id: assigned.get(member_id, EMPTY_ASSIGNMENT) for member_id in member_ids}


def _assignable_topics(
    names: Collection[str], initialised: Mapping[UUID, TopicPartitionSet], catalog: TopicCatalog
) -> dict[str, AssignableTopic]:
    """The subscribed topics that exist, in hash map order.

    The order matters only in a homogeneous group, where each member subscribes to all of them.
    """
    return {
        name: AssignableTopic(topic_id, initialised.get(topic_id, NO_PARTITIONS).partitions)
        for name, topic_id in _topic_ids(in_map_order(names), catalog)
    }


def assigned_within_subscription(
    target: Assignment, subscribed_topic_names: frozenset[str], catalog: TopicCatalog
) -> Assignment:
    """The part of a target whose topics exist and are in the member's subscription now."""
    topic_ids = {topic_id for _, topic_id in _topic_ids(subscribed_topic_names, catalog)}
    if target.keys() <= topic_ids:
        return target
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in topic_ids}


def _topic_ids(names: Iterable[str], catalog: TopicCatalog) -> Iterator[tuple[str, UUID]]:
    """The names of topics that exist, each with its id."""
    for name in names:
        shape = catalog.topic_by_name(name)
        if shape is not None:
            yield name, shape.topic_id
