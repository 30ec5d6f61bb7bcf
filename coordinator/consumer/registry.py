"""All consumer groups of this coordinator, and which of them read a topic; the dispatch of records to their
group.

Pure: live operations and loading go through the same `replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.group.topic_readers import TopicReaders
from barnabas.protocol.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
)
from barnabas.protocol.errors import ApiError, ErrorCode

_CHANGES_TOPICS = (ConsumerGroupMemberMetadataKey, ConsumerGroupRegularExpressionKey)


class ConsumerRegistry:
    """Groups by id."""

    def __init__(self, *, max_groups: int, other_group_type: Callable[[str], str | None]) -> None:
        """`other_group_type` answers the type of a group of that id that is no consumer group, or None."""
        self._max_groups = max_groups
        self._other_group_type = other_group_type
        self._groups: dict[str, ConsumerGroup] = {}
        self._readers = TopicReaders()

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return iter(self._groups.values())

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

    def groups_of_topic(self, topic_name: str) -> Collection[str]:
        """The ids of the groups with a member that reads the topic, whether it exists or not."""
        return self._readers.of_topic(topic_name)

    def existing(self, group_id: str) -> ConsumerGroup:
        """The group; GROUP_ID_NOT_FOUND if there is none, or one of another type."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if self._other_group_type(group_id) is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        raise not_a_consumer_group(group_id)

    def new(self, group_id: str) -> ConsumerGroup:
        """A new group, which is kept only when a record of it is replayed.

        GROUP_ID_NOT_FOUND if a group of another type has that id, GROUP_MAX_SIZE_REACHED (Kafka has no code
        of its own for it) if there are `group.consumer.max.groups`.
        """
        if self._other_group_type(group_id) is not None:
            raise not_a_consumer_group(group_id)
        if len(self._groups) >= self._max_groups:
            message = f"There are {self._max_groups} consumer groups already (group.consumer.max.groups)."
            raise ApiError(ErrorCode.group_max_size_reached, message)
        return ConsumerGroup(group_id)

    def replay(self, record: ConsumerGroupRecord) -> None:
        """Apply one record. A tombstone for what isn't there is passed over: compaction leaves such."""
        key, value = record
        group = self._groups.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            self._drop(group)
            return
        before = group.subscriptions.topics() if isinstance(key, _CHANGES_TOPICS) else None
        group.replay(key, value)
        if before is not None:
            self._readers.change(group.group_id, before, group.subscriptions.topics())

    def drop_partition(self, log_partition: int, partition_count: int) -> list[ConsumerGroup]:
        """Forget the groups whose records are in that partition of so many; answers them."""
        dropped = [
            group for group in self._groups.values() if group.id_hash % partition_count == log_partition
        ]
        for group in dropped:
            self._drop(group)
        return dropped

    def _drop(self, group: ConsumerGroup) -> None:
        self._readers.change(group.group_id, group.subscriptions.topics(), ())
        del self._groups[group.group_id]


def not_a_consumer_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.group_id_not_found, f"Group {group_id} is not a consumer group.")
