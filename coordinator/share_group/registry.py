"""All share groups of this coordinator, and which of them subscribe to a topic; the dispatch of records to
their group.

Pure: live operations and loading go through the same `replay`.
"""

from collections.abc import Callable, Collection, Iterator

from barnabas.coordinator.group.topic_readers import TopicReaders
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.errors import ApiError, ErrorCode
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
)


class ShareGroupRegistry:
    """Groups by id."""

    def __init__(self, *, max_groups: int, other_group_type: Callable[[str], str | None]) -> None:
        """`other_group_type` answers the type of a group of that id that is no share group, or None."""
        self._max_groups = max_groups
        self._other_group_type = other_group_type
        self._groups: dict[str, ShareGroup] = {}
        self._readers = TopicReaders()
        self._last_incarnation = 0

    def __iter__(self) -> Iterator[ShareGroup]:
        return iter(self._groups.values())

    def get(self, group_id: str) -> ShareGroup | None:
        return self._groups.get(group_id)

    def groups_of_topic(self, topic_name: str) -> Collection[str]:
        """The ids of the groups with a member that subscribes to the topic, whether it exists or not."""
        return self._readers.of_topic(topic_name)

    def existing(self, group_id: str) -> ShareGroup:
        """The group; GROUP_ID_NOT_FOUND if there is none, or one of another type."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        other_type = self._other_group_type(group_id)
        if other_type is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        message = f"Group {group_id} is a {other_type} group and is not a share group."
        raise ApiError(ErrorCode.group_id_not_found, message)

    def existing_or_new(self, group_id: str, wall_ms: int) -> ShareGroup:
        """The group, or a new one, which is kept only when a record of it is replayed.

        GROUP_ID_NOT_FOUND if a group of another type has that id, GROUP_MAX_SIZE_REACHED (Kafka has no code
        of its own for it) if there are `group.share.max.groups` groups.
        """
        if group_id in self._groups or self._other_group_type(group_id) is not None:
            return self.existing(group_id)
        if len(self._groups) >= self._max_groups:
            message = f"There are {self._max_groups} share groups already (group.share.max.groups)."
            raise ApiError(ErrorCode.group_max_size_reached, message)
        # Greater than any given or replayed before: one mark for all groups, instead of one for each that was
        # deleted, keeps this bounded.
        self._last_incarnation = max(self._last_incarnation + 1, wall_ms)
        return ShareGroup(group_id, self._last_incarnation)

    def replay(self, record: ShareGroupRecord) -> None:
        """Apply one record. A tombstone for what isn't there is passed over: compaction leaves such."""
        key, value = record
        group = self._groups.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[key.group_id] = ShareGroup(key.group_id)
        match key, value:
            case ShareGroupMemberMetadataKey(member_id=member_id), ShareGroupMemberMetadataValue() | None:
                before = set(group.subscriber_counts)
                group.replay_member_metadata(member_id, value)
                self._readers.change(group.group_id, before, group.subscriber_counts)
            case ShareGroupMetadataKey(), ShareGroupMetadataValue():
                group.replay_share_group_metadata(value)
                self._last_incarnation = max(self._last_incarnation, group.incarnation)
            case ShareGroupMetadataKey(), None:
                self._drop(group)
            case (
                ShareGroupTargetAssignmentMetadataKey(),
                ShareGroupTargetAssignmentMetadataValue() | None,
            ):
                group.replay_target_assignment_metadata(value)
            case (
                ShareGroupTargetAssignmentMemberKey(member_id=member_id),
                ShareGroupTargetAssignmentMemberValue() | None,
            ):
                group.replay_target_assignment_member(member_id, value)
            case (
                ShareGroupCurrentMemberAssignmentKey(member_id=member_id),
                ShareGroupCurrentMemberAssignmentValue() | None,
            ):
                group.replay_current_member_assignment(member_id, value)
            case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue() | None:
                group.replay_state_partition_metadata(value)
            case _:
                raise AssertionError(f"A {type(key).__name__} came with a {type(value).__name__}.")

    def drop_partition(self, log_partition: int, partition_count: int) -> list[ShareGroup]:
        """Forget the groups whose records are in that partition of so many; answers them."""
        dropped = [
            group for group in self._groups.values() if group.id_hash % partition_count == log_partition
        ]
        for group in dropped:
            self._drop(group)
        return dropped

    def _drop(self, group: ShareGroup) -> None:
        self._readers.change(group.group_id, group.subscriber_counts, ())
        del self._groups[group.group_id]
