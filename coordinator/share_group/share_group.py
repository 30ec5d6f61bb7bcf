"""One share group as the log has it (KIP-932, "Share group state"), changed by the replay of its six types of
records.

State changes by `replay_*` only, in log order, live and after a restart. `heartbeat.py`, `offsets.py` and
`deletion.py` decide which records are written. State that a restart may lose (whether the group is settled,
failed initialisations) is kept apart in `SoftState`. Pure: no clock, no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT, Assignment
from barnabas.coordinator.group.last_assignment import NO_ASSIGNMENT_EPOCH, assigned_at_ms, assignment_of
from barnabas.coordinator.replay.key_partition import absolute_hash
from barnabas.coordinator.share_group.load_samples import LoadSamples
from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitionsInfo,
)
from barnabas.runtime.moment import MonotonicOf

LEAVE_EPOCH = -1
"""The epoch of a member that left."""


class ShareGroupState(Enum):
    """A share group has no rebalance: with members it is stable."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroupMember(NamedTuple):
    """A member. `previous_member_epoch` is accepted too, because the answer with the newer epoch may have
    been lost.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = EMPTY_ASSIGNMENT


class TopicPartitionSet(NamedTuple):
    """Some partitions of one topic, ascending."""

    topic_name: str
    partitions: tuple[int, ...]


NO_PARTITIONS = TopicPartitionSet("", ())


class StatePartitions(NamedTuple):
    """The partitions with share state in a group, by topic id."""

    initialised: Mapping[UUID, TopicPartitionSet] = MappingProxyType({})
    initialising: Mapping[UUID, TopicPartitionSet] = MappingProxyType({})
    """Partitions that the group knows and that have no state: its creation failed, or only other partitions'
    offsets were set.
    """
    deleting: Mapping[UUID, str] = MappingProxyType({})
    """Topics (by name) whose state is being deleted, or could not be deleted, in all partitions except those
    initialised since. Before another of their partitions is initialised, its old state is deleted.
    """
    zero_starts: Mapping[UUID, frozenset[int]] = MappingProxyType({})
    """Initialised partitions that the group reads from offset 0: their share state begins there unless it has
    recorded a start of its own."""


@dataclass(slots=True)
class SoftState:
    """State of a group that is not in its records; a restart begins with these defaults."""

    metadata_refresh_due: bool = True
    """Whether a subscribed topic was created, deleted or grew since the last heartbeat that checked and found
    nothing to do.
    """
    settled: bool = False
    """Whether the last heartbeat that checked found nothing to do for the group, and nothing has changed
    since.
    """
    retry_initialisation_at_ms: dict[tuple[UUID, int], int] = field(
        default_factory=dict[tuple[UUID, int], int]
    )
    """Partitions whose state could not be created, and when (monotonic) to try again."""
    empty_since_ms: int | None = None
    """When (monotonic) the group was first found empty after its last member or its last change of offsets.
    """
    load_samples: LoadSamples | None = None
    """The last look at the group's load; None unless its assignor is `load`."""


class ShareGroup:
    """A group; epochs begin as Kafka's do: group and assignment epoch 1, no assignment computed yet."""

    __slots__ = (
        "assigned_at_ms",
        "assignment_epoch",
        "group_epoch",
        "group_id",
        "id_hash",
        "incarnation",
        "members",
        "metadata_hash",
        "soft",
        "state_partitions",
        "subscriber_counts",
        "target",
    )

    def __init__(self, group_id: str, incarnation: int = 0) -> None:
        self.group_id = group_id
        self.incarnation = incarnation
        self.id_hash = absolute_hash(group_id)
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assigned_at_ms: int | None = None
        """When (monotonic) the target was computed; None if the next one is due at once."""
        self.members: dict[str, ShareGroupMember] = {}
        self.target: dict[str, Assignment] = {}
        self.subscriber_counts: dict[str, int] = {}
        self.state_partitions = StatePartitions()
        self.soft = SoftState()

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def replay_share_group_metadata(self, value: ShareGroupMetadataValue) -> None:
        self.group_epoch = value.group_epoch
        self.metadata_hash = value.metadata_hash
        self.incarnation = value.group_incarnation
        self.soft.settled = False

    def replay_member_metadata(self, member_id: str, value: ShareGroupMemberMetadataValue | None) -> None:
        if value is None:
            member = self.members.pop(member_id, None)
            if member is not None:
                self._count_subscriptions(member.subscribed_topic_names, frozenset())
        else:
            member = self.members.get(member_id) or ShareGroupMember(member_id)
            names = frozenset(value.subscribed_topic_names)
            self._count_subscriptions(member.subscribed_topic_names, names)
            self.members[member_id] = member._replace(
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                subscribed_topic_names=names,
            )
        self.soft.empty_since_ms = None
        self.soft.settled = False

    def replay_target_assignment_metadata(
        self, value: ShareGroupTargetAssignmentMetadataValue | None, monotonic_of: MonotonicOf
    ) -> None:
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assigned_at_ms = assigned_at_ms(value, monotonic_of)
        self.soft.settled = False

    def replay_target_assignment_member(
        self, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = assignment_of(value.topic_partitions)
        self.soft.settled = False

    def replay_current_member_assignment(
        self, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is None:
            member = self.members.get(member_id)
            if member is None:
                return
            change = (LEAVE_EPOCH, LEAVE_EPOCH, EMPTY_ASSIGNMENT)
        else:
            # Compaction may leave this record before the member's metadata.
            member = self.members.get(member_id) or ShareGroupMember(member_id)
            change = (
                value.member_epoch,
                value.previous_member_epoch,
                assignment_of(value.assigned_partitions),
            )
        self.members[member_id] = member._replace(
            member_epoch=change[0], previous_member_epoch=change[1], assigned=change[2]
        )
        self.soft.settled = False

    def replay_state_partition_metadata(self, value: ShareGroupStatePartitionMetadataValue | None) -> None:
        if value is None:
            self.state_partitions = StatePartitions()
        else:
            self.state_partitions = StatePartitions(
                _partition_sets_of(value.initialized_topics),
                _partition_sets_of(value.initializing_topics),
                {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
                {
                    topic.topic_id: frozenset(topic.zero_starts)
                    for topic in value.initialized_topics
                    if topic.zero_starts
                },
            )
        self.soft.settled = False

    def _count_subscriptions(self, before: frozenset[str], after: frozenset[str]) -> None:
        self.subscriber_counts = subscriber_counts_after(self.subscriber_counts, before, after)


def subscriber_counts_after(
    counts: Mapping[str, int], before: frozenset[str], after: frozenset[str]
) -> dict[str, int]:
    """Topic name -> number of members that subscribe to it, once one member's topics changed."""
    result = dict(counts)
    for name in sorted(after - before):  # Sorted, so that every run writes records in the same order.
        result[name] = result.get(name, 0) + 1
    for name in before - after:
        result[name] -= 1
        if not result[name]:
            del result[name]
    return result


def _partition_sets_of(topics: Iterable[TopicPartitionsInfo]) -> dict[UUID, TopicPartitionSet]:
    return {
        topic.topic_id: TopicPartitionSet(topic.topic_name, tuple(sorted(topic.partitions)))
        for topic in topics
    }
