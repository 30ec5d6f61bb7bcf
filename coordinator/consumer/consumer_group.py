"""One consumer group as the log has it (KIP-848), changed by the replay of its records.

State changes by `replay` only, in log order, live and after a restart. Other modules decide which records are
written. State that a restart may lose is kept apart in `SoftState`. Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.consumer.member import (
    LEAVE_EPOCH,
    NO_MEMBER,
    NO_PARTITIONS,
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from barnabas.coordinator.consumer.shared_partitions import shares_of
from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.coordinator.consumer.subscriptions import ResolvedRegex, Subscriptions
from barnabas.coordinator.group.last_assignment import NO_ASSIGNMENT_EPOCH, assigned_at_ms, assignment_of
from barnabas.coordinator.replay.key_partition import absolute_hash
from barnabas.protocol.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    OwnedPartitions,
)
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange
from barnabas.runtime.moment import Moment, MonotonicOf


class ConsumerGroupState(Enum):
    """The states of a group, under Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Something has changed since the target assignment was computed."""
    RECONCILING = "Reconciling"
    """There is a target, and not all members have reached it."""
    STABLE = "Stable"


@dataclass(slots=True)
class SoftState:
    """State of a group that is not in its records; a restart begins with these defaults."""

    topic_changes: int = 0
    """How often topics that the group reads were created, deleted or grew."""
    topic_changes_seen: int = -1
    """How many of these changes the group epoch accounts for."""
    is_resolving: bool = False
    """Whether its regular expressions are about to be resolved."""


class ConsumerGroup:
    """A group; epochs begin as Kafka's do: group and assignment epoch 1, no assignment computed yet."""

    __slots__ = (
        "_owners",
        "_sharers",
        "_static_members",
        "assigned_at_ms",
        "assignment_epoch",
        "group_epoch",
        "group_id",
        "id_hash",
        "members",
        "metadata_hash",
        "soft",
        "subscriptions",
        "target",
        "target_shares",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.id_hash = absolute_hash(group_id)
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assigned_at_ms: int | None = None
        """When (monotonic) the target was computed; None if the next one is due at once."""
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Assignment] = {}
        self.target_shares: dict[str, Shares] = {}
        """The shares of members whose target has any."""
        self.subscriptions = Subscriptions()
        self.soft = SoftState()
        self._static_members: dict[str, str] = {}
        self._owners: dict[UUID, dict[int, str]] = {}
        """The members that have whole partitions."""
        self._sharers: dict[TopicIdPartition, dict[str, HashRange]] = {}

    # Questions

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member with this instance id."""
        member_id = None if instance_id is None else self._static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_owned_by_another(
        self, member_id: str, topic_id: UUID, partition: int, hashes: HashRange = ALL_HASHES
    ) -> bool:
        """Whether another member has the partition, or a share of it that overlaps, or has not given that up
        yet.
        """
        owner = self._owners.get(topic_id, {}).get(partition)
        if owner is not None and owner != member_id:
            return True
        sharers = self._sharers.get(TopicIdPartition(topic_id, partition), {})
        return any(sharer_id != member_id and hashes.overlaps(share) for sharer_id, share in sharers.items())

    def is_subscribed_to(self, topic_name: str) -> bool:
        return self.subscriptions.has_topic(topic_name)

    # Replay

    def replay(
        self, key: ConsumerGroupKey, value: ConsumerGroupValue | None, monotonic_of: MonotonicOf
    ) -> None:
        """Apply one record of this group, except the tombstone of the group. Tombstones of unknown members
        are ignored.
        """
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.group_epoch = value.epoch
                self.metadata_hash = value.metadata_hash
            case (
                ConsumerGroupMemberMetadataKey(member_id=member_id),
                ConsumerGroupMemberMetadataValue() | None,
            ):
                self._replay_member_metadata(member_id, value)
            case (
                ConsumerGroupTargetAssignmentMetadataKey(),
                ConsumerGroupTargetAssignmentMetadataValue() | None,
            ):
                self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
                self.assigned_at_ms = assigned_at_ms(value, monotonic_of)
            case (
                ConsumerGroupTargetAssignmentMemberKey(member_id=member_id),
                ConsumerGroupTargetAssignmentMemberValue(),
            ):
                self._replay_target(member_id, value)
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), None:
                self.target.pop(member_id, None)
                self.target_shares.pop(member_id, None)
            case (
                ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id),
                ConsumerGroupCurrentMemberAssignmentValue() | None,
            ):
                self._replay_current_assignment(member_id, value)
            case (
                ConsumerGroupRegularExpressionKey(regular_expression=regex),
                ConsumerGroupRegularExpressionValue() | None,
            ):
                self._replay_regex(regex, value, monotonic_of)
            case ConsumerGroupPartitionMetadataKey(), _:
                pass
            case _:
                raise AssertionError(f"A {type(key).__name__} came with a {type(value).__name__}.")

    def _replay_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue) -> None:
        self.target[member_id] = assignment_of(value.topic_partitions)
        shares = shares_of(value.topic_partitions)
        if shares:
            self.target_shares[member_id] = shares
        else:
            self.target_shares.pop(member_id, None)

    def _replay_member_metadata(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        before = self.members.get(member_id)
        if value is None:
            if before is not None:
                self._remove(before)
            return
        self._put(
            (before or ConsumerMember(member_id))._replace(
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                subscribed_topic_names=frozenset(value.subscribed_topic_names),
                subscribed_topic_regex=value.subscribed_topic_regex or "",
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                server_assignor=value.server_assignor,
                classic=_classic_metadata(value.classic_member_metadata),
                individual_commit=value.individual_commit,
            )
        )

    def _replay_current_assignment(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        before = self.members.get(member_id)
        if value is None:
            if before is not None:
                self._put(
                    before._replace(
                        member_epoch=LEAVE_EPOCH,
                        previous_member_epoch=LEAVE_EPOCH,
                        assigned=NO_PARTITIONS,
                        revoking=NO_PARTITIONS,
                        shares=NO_SHARES,
                    )
                )
            return
        self._put(
            # Compaction may leave this record before the member's metadata.
            (before or ConsumerMember(member_id))._replace(
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=_state_of(value.state),
                assigned=_partition_epochs(value.assigned_partitions, value.member_epoch),
                revoking=_partition_epochs(value.partitions_pending_revocation, value.member_epoch),
                shares=shares_of([*value.assigned_partitions, *value.partitions_pending_revocation]),
            )
        )

    def _replay_regex(
        self, regex: str, value: ConsumerGroupRegularExpressionValue | None, monotonic_of: MonotonicOf
    ) -> None:
        resolved = dict(self.subscriptions.resolved)
        if value is None:
            resolved.pop(regex, None)
        else:
            resolved_at = Moment(monotonic_of(value.timestamp_ms), value.timestamp_ms)
            resolved[regex] = ResolvedRegex(frozenset(value.topics), value.version, resolved_at)
        self.subscriptions = self.subscriptions._replace(resolved=resolved)

    def _put(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id, NO_MEMBER)
        self._release(before)
        self.members[member.member_id] = member
        self._own(member)
        self.subscriptions = self.subscriptions.changed(before, member)
        if member.instance_id is not None:
            self._static_members[member.instance_id] = member.member_id

    def _remove(self, member: ConsumerMember) -> None:
        self._release(member)
        del self.members[member.member_id]
        self.subscriptions = self.subscriptions.changed(member, NO_MEMBER)
        if member.instance_id is not None and (
            self._static_members.get(member.instance_id) == member.member_id
        ):
            del self._static_members[member.instance_id]

    def _own(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, epochs in partitions.items():
                whole = [
                    partition
                    for partition in epochs
                    if TopicIdPartition(topic_id, partition) not in member.shares
                ]
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(whole, member.member_id))
        for partition, hashes in member.shares.items():
            self._sharers.setdefault(partition, {})[member.member_id] = hashes

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.revoking):
            for topic_id, epochs in partitions.items():
                owners = self._owners.get(topic_id, {})
                for partition in epochs:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)
        for shared in member.shares:
            sharers = self._sharers.get(shared, {})
            sharers.pop(member.member_id, None)
            if not sharers:
                self._sharers.pop(shared, None)


def _classic_metadata(value: ClassicMemberMetadata | None) -> ClassicMetadata | None:
    if value is None or not value.supported_protocols:
        return None
    protocols = tuple((protocol.name, protocol.metadata) for protocol in value.supported_protocols)
    return ClassicMetadata(value.session_timeout_ms, protocols)


def _state_of(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partition_epochs(topics: Iterable[OwnedPartitions], member_epoch: int) -> PartitionEpochs:
    """The partitions with their epochs. Older records have no epochs; then it is the member's."""
    result: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(member_epoch, 0),) * len(topic.partitions)
        if topic.partitions:
            result[topic.topic_id] = dict(sorted(zip(topic.partitions, epochs, strict=True)))
    return result
