"""The records of a share group, made from its state: one function per type of record, and tombstones.

Lists are in the order in which Kafka writes them (topic names and partitions ascending), so that the same
state always gives the same bytes.
"""

from collections.abc import Mapping
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.share_group.share_group import (
    ShareGroup,
    ShareGroupMember,
    StatePartitions,
    TopicPartitionSet,
)
from barnabas.protocol.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupRecord,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from barnabas.protocol.topic_partitions import TopicPartitions

_STABLE = 0
"""Kafka's MemberState; members of share groups have no other."""


def group_metadata(group: ShareGroup, group_epoch: int, metadata_hash: int) -> ShareGroupRecord:
    return ShareGroupMetadataKey(group_id=group.group_id), ShareGroupMetadataValue(
        group_epoch=group_epoch, metadata_hash=metadata_hash, group_incarnation=group.incarnation
    )


def member_metadata(group_id: str, member: ShareGroupMember) -> ShareGroupRecord:
    return ShareGroupMemberMetadataKey(
        group_id=group_id, member_id=member.member_id
    ), ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
    )


def target_assignment_metadata(
    group_id: str, assignment_epoch: int, assignment_timestamp_ms: int
) -> ShareGroupRecord:
    return ShareGroupTargetAssignmentMetadataKey(group_id=group_id), ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp_ms=assignment_timestamp_ms
    )


def target_assignment_member(group_id: str, member_id: str, assignment: Assignment) -> ShareGroupRecord:
    return ShareGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=member_id
    ), ShareGroupTargetAssignmentMemberValue(topic_partitions=_topic_partitions(assignment))


def target_assignment(
    group: ShareGroup, target: Mapping[str, Assignment], assignment_epoch: int, assignment_timestamp_ms: int
) -> list[ShareGroupRecord]:
    """The records of a group's new target (by member): the changed assignments, then the epoch."""
    changed = [
        target_assignment_member(group.group_id, member_id, assignment)
        for member_id, assignment in target.items()
        if assignment != group.target.get(member_id)
    ]
    return [*changed, target_assignment_metadata(group.group_id, assignment_epoch, assignment_timestamp_ms)]


def current_member_assignment(group_id: str, member: ShareGroupMember) -> ShareGroupRecord:
    return ShareGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=member.member_id
    ), ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STABLE,
        assigned_partitions=_topic_partitions(member.assigned),
    )


def state_partition_metadata(group_id: str, partitions: StatePartitions) -> ShareGroupRecord:
    return ShareGroupStatePartitionMetadataKey(group_id=group_id), ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topic_partitions_infos(partitions.initialising, {}),
        initialized_topics=_topic_partitions_infos(partitions.initialised, partitions.zero_starts),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in partitions.deleting.items()
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[ShareGroupRecord]:
    """The tombstones of a member, in Kafka's order."""
    return [
        (ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str) -> list[ShareGroupRecord]:
    """The tombstones of a group without members, in Kafka's order."""
    return [
        (ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        (ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        (ShareGroupMetadataKey(group_id=group_id), None),
    ]


def _topic_partitions(assignment: Assignment) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in assignment.items()
    )


def _topic_partitions_infos(
    topics: Mapping[UUID, TopicPartitionSet], zero_starts: Mapping[UUID, frozenset[int]]
) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topic.topic_name,
            partitions=topic.partitions,
            zero_starts=tuple(sorted(zero_starts.get(topic_id, ()))),
        )
        for topic_id, topic in topics.items()
    )
