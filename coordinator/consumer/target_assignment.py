"""A consumer group's target assignment: the partitions that each member is to read, by the assignor
(KIP-848).

Members go to the assignor in the order of Kafka's hash maps, so that the result is Kafka's for the same
group. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT
from barnabas.coordinator.assignor.consumer_assignors import CONSUMER_ASSIGNORS
from barnabas.coordinator.assignor.exclusive import ExclusiveMember
from barnabas.coordinator.assignor.java_hash_map import (
    map_copy_capacity,
    string_hash,
    timeline_order,
    walk_order,
)
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.coordinator.consumer.sharing import NO_SHARES, Reading, Sharer, exclusive_part, share_out
from barnabas.coordinator.consumer.subscriptions import Subscriptions
from barnabas.coordinator.group.assignor_order import in_map_order, members_in_map_order
from barnabas.coordinator.replay.interfaces import TopicCatalog, TopicShape
from barnabas.protocol.identity import TopicIdPartition


def preferred_assignor(
    before: Mapping[str, ConsumerMember],
    updated: ConsumerMember,
    others: Iterable[ConsumerMember],
    default: str,
) -> str:
    """The assignor with the most votes, among the members `before` with one of them updated.

    Of two with equal votes it is the first one in the hash map into which Kafka copies its counts. There, an
    assignor that only the updated member asks for is inserted again, at the front of its bucket.
    """
    known, wishes = _wishes(before.values()), _wishes(others)
    wish = updated.server_assignor
    names = [name for name in timeline_order(sorted(known)) if name in wishes]
    if wish is not None:
        names = names if wish in wishes else [wish, *names]
        wishes[wish] += 1
    names = walk_order(names, string_hash, map_copy_capacity(len(known), len(names)))
    return max(names, key=wishes.__getitem__, default=default)


def described_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor with the most votes; ties are resolved in another order, as in Kafka."""
    wishes = _wishes(members)
    return max(timeline_order(sorted(wishes)), key=wishes.__getitem__, default=default)


def _wishes(members: Iterable[ConsumerMember]) -> Counter[str]:
    return Counter(member.server_assignor for member in members if member.server_assignor is not None)


def _members_with(
    group: ConsumerGroup, updated: ConsumerMember, replaced_id: str | None
) -> dict[str, ConsumerMember]:
    """The group's members with one changed, or with a new one that may replace another."""
    members = {**group.members, updated.member_id: updated}
    if replaced_id is not None and replaced_id != updated.member_id:
        members.pop(replaced_id, None)
    return members


def compute_target(
    group: ConsumerGroup,
    updated: ConsumerMember,
    replaced_id: str | None,
    previous: Reading,
    subscriptions: Subscriptions,
    default_assignor: str,
    catalog: TopicCatalog,
) -> dict[str, Reading]:
    """The new target of every member, in hash map order. `previous` is the last target of the member that has
    changed, or takes another's place.

    Topics that do not exist are skipped.
    """
    shapes = [
        shape
        for name in in_map_order(subscriptions.topics())
        if (shape := catalog.topic_by_name(name)) is not None
    ]
    topic_ids = _topic_ids_of(shapes)
    members = _members_with(group, updated, replaced_id)
    last = {
        member_id: previous if member_id == updated.member_id else _last_target(group, member_id)
        for member_id in members_in_map_order(group.members, updated.member_id)
        if member_id in members
    }
    specs = {
        member_id: ExclusiveMember(
            topic_ids(subscriptions.topics_of(members[member_id])),
            exclusive_part(reading),
            members[member_id].instance_id,
        )
        for member_id, reading in last.items()
    }
    assign = CONSUMER_ASSIGNORS[_assignor(group, members, updated, default_assignor)]
    counts = {shape.topic_id: shape.partition_count for shape in shapes}
    assigned = assign(specs, counts, subscriptions.is_homogeneous(len(members)))
    targets = {member_id: Reading(assigned.get(member_id, EMPTY_ASSIGNMENT)) for member_id in specs}
    sharers = {
        member_id: Sharer(specs[member_id].topic_ids, *last[member_id])
        for member_id in specs
        if members[member_id].individual_commit
    }
    return {**targets, **(share_out(sharers, _partitions_of(sharers, targets, counts)) or {})}


def _partitions_of(
    member_ids: Collection[str], targets: Mapping[str, Reading], topic_ids: Iterable[UUID]
) -> list[TopicIdPartition]:
    """The partitions that these members have together, topic by topic."""
    return [
        TopicIdPartition(topic_id, partition)
        for topic_id in topic_ids
        for partition in sorted(
            partition
            for member_id in member_ids
            for partition in targets[member_id].assignment.get(topic_id, ())
        )
    ]


def _last_target(group: ConsumerGroup, member_id: str) -> Reading:
    assignment = group.target.get(member_id, EMPTY_ASSIGNMENT)
    return Reading(assignment, group.target_shares.get(member_id, NO_SHARES))


def _assignor(
    group: ConsumerGroup, members: Mapping[str, ConsumerMember], updated: ConsumerMember, default: str
) -> str:
    others = [member for member_id, member in members.items() if member_id != updated.member_id]
    return preferred_assignor(group.members, updated, others, default)


def changes_assignor(
    group: ConsumerGroup, updated: ConsumerMember, replaced_id: str | None, default: str
) -> bool:
    """Whether the update of a member changes the assignor with the most votes.

    Kafka may also see a change where two have equal votes (decision 5).
    """
    before = described_assignor(group.members.values(), default)
    return _assignor(group, _members_with(group, updated, replaced_id), updated, default) != before


def _topic_ids_of(shapes: Iterable[TopicShape]) -> Callable[[frozenset[str]], Mapping[UUID, None]]:
    """A look-up of topics' ids by their names, done once for all members that read the same topics."""
    ids = {shape.name: shape.topic_id for shape in shapes}

    @cache
    def topic_ids(names: frozenset[str]) -> Mapping[UUID, None]:
        return {ids[name]: None for name in in_map_order(names) if name in ids}

    return topic_ids
