"""The partitions that need share state in a group, and where the group starts to read them (KIP-932).

In Kafka this runs after a heartbeat, and the partitions are assigned a second later. Here state is created
locally, so this happens within the heartbeat, before the assignor runs: the first member of a new group gets
its partitions at once. Pure: it makes a plan, and the lists of partitions after the plan was carried out, in
full or in part.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.replay.interfaces import TopicCatalog, TopicShape
from barnabas.coordinator.share_group.share_group import (
    NO_PARTITIONS,
    ShareGroup,
    StatePartitions,
    TopicPartitionSet,
)
from barnabas.protocol.identity import TopicIdPartition


class NewPartition(NamedTuple):
    """A partition whose share state is to be created."""

    topic_id: UUID
    topic_name: str
    partition: int
    starts_at_zero: bool = False
    """Whether the group reads it from offset 0; otherwise its reset policy decides at the first fetch."""


class InitialisationPlan(NamedTuple):
    """The partitions of existing topics that have no state yet."""

    due: list[NewPartition]
    held_back: list[NewPartition]
    """The partitions whose last attempt failed a short while ago."""


def plan_initialisation(
    group: ShareGroup, topic_names: Iterable[str], catalog: TopicCatalog, now_ms: int
) -> InitialisationPlan:
    """The partitions whose state a heartbeat at `now_ms` (monotonic) is to create, for a group that reads
    these topics.
    """
    shapes = [shape for name in topic_names if (shape := catalog.topic_by_name(name)) is not None]
    retries = group.soft.retry_initialisation_at_ms
    plan = InitialisationPlan([], [])
    for shape in shapes:
        for new in _missing_of(shape, group.state_partitions):
            is_due = now_ms >= retries.get((new.topic_id, new.partition), now_ms)
            (plan.due if is_due else plan.held_back).append(new)
    return plan


def _missing_of(shape: TopicShape, known: StatePartitions) -> list[NewPartition]:
    """A partition that is added to a topic of the group is read from its beginning: it was empty then, and a
    group with the policy `latest` must not miss the records that arrive before its first fetch (KAFKA-20742).
    """
    there = known.initialised.get(shape.topic_id, NO_PARTITIONS).partitions
    if len(there) >= shape.partition_count:
        return []
    waiting = known.initialising.get(shape.topic_id, NO_PARTITIONS).partitions
    is_new = not there and not waiting
    return [
        NewPartition(
            shape.topic_id,
            shape.name,
            partition,
            starts_at_zero=not is_new and partition not in waiting,
        )
        for partition in sorted(set(range(shape.partition_count)).difference(there))
    ]


def after_initialisation(
    known: StatePartitions, made: Iterable[NewPartition], waiting: Iterable[NewPartition]
) -> StatePartitions:
    """The lists once the partitions `made` have state and those `waiting` do not yet.

    A topic stays marked as being deleted while any of its partitions waits: that partition may still have the
    state that could not be deleted.
    """
    made = list(made)
    initialised = _united(known.initialised, made)
    initialising = _without(_united(known.initialising, waiting), initialised)
    deleting = {
        topic: name
        for topic, name in known.deleting.items()
        if topic not in initialised or topic in initialising
    }
    return StatePartitions(initialised, initialising, deleting, _zero_starts_after(known, made))


def with_zero_starts(known: StatePartitions, partitions: Iterable[TopicIdPartition]) -> StatePartitions:
    """The lists once the group begins at offset 0 in these partitions, as far as they have state."""
    made = [
        NewPartition(
            partition.topic_id, known.initialised[partition.topic_id].topic_name, partition.partition, True
        )
        for partition in partitions
        if partition.partition in known.initialised.get(partition.topic_id, NO_PARTITIONS).partitions
    ]
    return known._replace(zero_starts=_zero_starts_after(known, made))


def without_zero_starts(known: StatePartitions, partitions: Iterable[TopicIdPartition]) -> StatePartitions:
    """The lists once the reset policy chooses the start in these partitions."""
    undecided = [NewPartition(partition.topic_id, "", partition.partition) for partition in partitions]
    return known._replace(zero_starts=_zero_starts_after(known, undecided))


def without_topics(known: StatePartitions, topic_ids: Collection[UUID]) -> StatePartitions:
    """The lists without these topics."""
    return StatePartitions(
        {topic: value for topic, value in known.initialised.items() if topic not in topic_ids},
        {topic: value for topic, value in known.initialising.items() if topic not in topic_ids},
        {topic: name for topic, name in known.deleting.items() if topic not in topic_ids},
        {topic: value for topic, value in known.zero_starts.items() if topic not in topic_ids},
    )


def _zero_starts_after(known: StatePartitions, made: Iterable[NewPartition]) -> dict[UUID, frozenset[int]]:
    after = {topic_id: set(partitions) for topic_id, partitions in known.zero_starts.items()}
    for new in made:
        of_topic = after.setdefault(new.topic_id, set())
        (of_topic.add if new.starts_at_zero else of_topic.discard)(new.partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in after.items() if partitions}


def _united(
    before: Mapping[UUID, TopicPartitionSet], added: Iterable[NewPartition]
) -> dict[UUID, TopicPartitionSet]:
    names: dict[UUID, str] = {}
    partitions: dict[UUID, set[int]] = {}
    for new in added:
        names[new.topic_id] = new.topic_name
        partitions.setdefault(new.topic_id, set()).add(new.partition)
    result = dict(before)
    for topic_id, indexes in partitions.items():
        indexes.update(before.get(topic_id, NO_PARTITIONS).partitions)
        result[topic_id] = TopicPartitionSet(names[topic_id], tuple(sorted(indexes)))
    return result


def _without(
    sets: Mapping[UUID, TopicPartitionSet], taken: Mapping[UUID, TopicPartitionSet]
) -> dict[UUID, TopicPartitionSet]:
    left = {
        topic_id: TopicPartitionSet(
            value.topic_name,
            tuple(sorted(set(value.partitions).difference(taken.get(topic_id, NO_PARTITIONS).partitions))),
        )
        for topic_id, value in sets.items()
    }
    return {topic_id: value for topic_id, value in left.items() if value.partitions}
