"""The records of a consumer group, made from its state: one function per kind, and tombstones."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ClassicMetadata, ConsumerMember, PartitionEpochs
from barnabas.coordinator.consumer.shared_partitions import shared_partitions
from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.coordinator.consumer.subscriptions import ResolvedRegex
from barnabas.protocol.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OwnedPartitions,
    TargetPartitions,
)


def group_metadata(group_id: str, group_epoch: int, metadata_hash: int) -> ConsumerGroupRecord:
    return ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(
        epoch=group_epoch, metadata_hash=metadata_hash
    )


def member_metadata(group_id: str, member: ConsumerMember) -> ConsumerGroupRecord:
    return ConsumerGroupMemberMetadataKey(
        group_id=group_id, member_id=member.member_id
    ), ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None if member.classic is None else _classic_metadata(member.classic),
        individual_commit=member.individual_commit,
    )


def target_assignment_metadata(
    group_id: str, assignment_epoch: int, assignment_timestamp_ms: int
) -> ConsumerGroupRecord:
    return ConsumerGroupTargetAssignmentMetadataKey(
        group_id=group_id
    ), ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp_ms=assignment_timestamp_ms
    )


def target_assignment_member(
    group_id: str, member_id: str, assignment: Assignment, shares: Shares = NO_SHARES
) -> ConsumerGroupRecord:
    return ConsumerGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=member_id
    ), ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetPartitions(
                topic_id=topic_id,
                partitions=partitions,
                shares=shared_partitions(topic_id, partitions, shares),
            )
            for topic_id, partitions in assignment.items()
        )
    )


def current_member_assignment(group_id: str, member: ConsumerMember) -> ConsumerGroupRecord:
    return ConsumerGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=member.member_id
    ), ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_owned_partitions(member.assigned, member.shares),
        partitions_pending_revocation=_owned_partitions(member.revoking, member.shares),
    )


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> ConsumerGroupRecord:
    return ConsumerGroupRegularExpressionKey(
        group_id=group_id, regular_expression=regex
    ), ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)),
        version=resolved.version,
        timestamp_ms=resolved.resolved_at.wall_ms,
    )


def regular_expression_tombstone(group_id: str, regex: str) -> ConsumerGroupRecord:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerGroupRecord]:
    """The tombstones of a member, in Kafka's order."""
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group: ConsumerGroup, member_ids: Iterable[str]) -> list[ConsumerGroupRecord]:
    """The tombstones of a group with these members, in Kafka's order."""
    group_id, members = group.group_id, list(member_ids)
    return [
        *(
            (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        *(
            (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        (ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(
            (ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        *(regular_expression_tombstone(group_id, regex) for regex in group.subscriptions.resolved),
        (ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
        (ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _classic_metadata(classic: ClassicMetadata) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ),
    )


def _owned_partitions(partitions: PartitionEpochs, shares: Shares) -> tuple[OwnedPartitions, ...]:
    return tuple(
        OwnedPartitions(
            topic_id=topic_id,
            partitions=tuple(epochs),
            assignment_epochs=tuple(epochs.values()),
            shares=shared_partitions(topic_id, epochs, shares),
        )
        for topic_id, epochs in partitions.items()
    )
