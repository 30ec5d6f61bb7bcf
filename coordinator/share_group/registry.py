"""All share groups of this coordinator, changed by the replay of their records; which of them read a topic.
Pure.
"""

from collections.abc import Callable, Collection

from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.topic_readers import TopicReaders
from barnabas.coordinator.share_group.share_group import ShareGroup
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
from barnabas.runtime.moment import MonotonicOf


class ShareGroupRegistry(GroupRegistry[ShareGroup]):
    """Groups by id."""

    def __init__(
        self, group_type: str, *, max_groups: int, other_group_type: Callable[[str], str | None]
    ) -> None:
        """See `GroupRegistry`."""
        super().__init__(group_type, max_groups=max_groups, other_group_type=other_group_type)
        self._readers = TopicReaders()
        self._last_incarnation = 0

    def groups_of_topic(self, topic_name: str) -> Collection[str]:
        """The ids of the groups with a member that subscribes to the topic, whether it exists or not."""
        return self._readers.of_topic(topic_name)

    def existing_or_new(self, group_id: str, wall_ms: int) -> ShareGroup:
        """The group, or a new one, which is kept when a record of it is replayed.

        GROUP_ID_NOT_FOUND if a group of another type has that id, GROUP_MAX_SIZE_REACHED if
        `group.share.max.groups` is reached.
        """
        if group_id in self._groups or self.is_of_another_type(group_id):
            return self.existing(group_id)
        self.check_room()
        # Greater than any incarnation given or replayed before. One number for all groups, instead of one for
        # each deleted group, keeps this bounded.
        self._last_incarnation = max(self._last_incarnation + 1, wall_ms)
        return ShareGroup(group_id, self._last_incarnation)

    def replay(self, record: ShareGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply one record. A tombstone of an unknown group is ignored: compaction leaves such tombstones."""
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
                self.drop(group)
            case (
                ShareGroupTargetAssignmentMetadataKey(),
                ShareGroupTargetAssignmentMetadataValue() | None,
            ):
                group.replay_target_assignment_metadata(value, monotonic_of)
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

    def drop(self, group: ShareGroup) -> None:
        self._readers.change(group.group_id, group.subscriber_counts, ())
        super().drop(group)
