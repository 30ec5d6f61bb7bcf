"""All consumer groups of this coordinator, changed by the replay of their records; which of them read a
topic. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.topic_readers import TopicReaders
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
)
from barnabas.runtime.moment import MonotonicOf

_CHANGES_TOPICS = (ConsumerGroupMemberMetadataKey, ConsumerGroupRegularExpressionKey)


class ConsumerRegistry(GroupRegistry[ConsumerGroup]):
    """Groups by id."""

    def __init__(
        self, group_type: str, *, max_groups: int, other_group_type: Callable[[str], str | None]
    ) -> None:
        """See `GroupRegistry`."""
        super().__init__(group_type, max_groups=max_groups, other_group_type=other_group_type)
        self._readers = TopicReaders()

    def groups_of_topic(self, topic_name: str) -> Collection[str]:
        """The ids of the groups with a member that reads the topic, whether it exists or not."""
        return self._readers.of_topic(topic_name)

    def new(self, group_id: str) -> ConsumerGroup:
        """A new group, which is kept when a record of it is replayed.

        GROUP_ID_NOT_FOUND if a group of another type has that id, GROUP_MAX_SIZE_REACHED if
        `group.consumer.max.groups` is reached.
        """
        if self.is_of_another_type(group_id):
            return self.existing(group_id)
        self.check_room()
        return ConsumerGroup(group_id)

    def replay(self, record: ConsumerGroupRecord, monotonic_of: MonotonicOf) -> None:
        """Apply one record. A tombstone of an unknown group is ignored: compaction leaves such tombstones."""
        key, value = record
        group = self._groups.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            self.drop(group)
            return
        before = group.subscriptions.topics() if isinstance(key, _CHANGES_TOPICS) else None
        group.replay(key, value, monotonic_of)
        if before is not None:
            self._readers.change(group.group_id, before, group.subscriptions.topics())

    def drop(self, group: ConsumerGroup) -> None:
        self._readers.change(group.group_id, group.subscriptions.topics(), ())
        super().drop(group)
