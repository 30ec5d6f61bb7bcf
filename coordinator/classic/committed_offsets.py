"""The offsets that groups have committed, by group, topic name and partition (pure).

An offset belongs to a topic's name, and where its id is known to that one topic: what was committed for a
topic that has been deleted and made again is not that of the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.classic_group_records import (
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    OffsetCommitKey,
    OffsetCommitValue,
)


class OffsetKey(NamedTuple):
    """What an offset is committed for."""

    group_id: str
    topic_name: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset; times are of the day, `expires_at_ms` -1 where retention decides."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int = NO_TIMESTAMP
    topic_id: UUID = NO_TOPIC_ID

    def is_for(self, topic_id: UUID) -> bool:
        """Whether it belongs to this topic, as far as either id is known."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id


TopicPartitions = Mapping[str, Mapping[int, CommittedOffset]]
"""One group's offsets by topic name and partition."""


class CommittedOffsets:
    """All offsets of all groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def of_group(self, group_id: str) -> TopicPartitions:
        return self._by_group.get(group_id, {})

    def keys_of_group(self, group_id: str) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """Everything that one group has committed."""
        for topic_name, partitions in self.of_group(group_id).items():
            for partition, committed in partitions.items():
                yield OffsetKey(group_id, topic_name, partition), committed

    def keys_of_topics(self, topics: Mapping[str, UUID]) -> list[OffsetKey]:
        """What was committed for topics, by name, of these ids."""
        return [
            OffsetKey(group_id, name, partition)
            for group_id, by_topic in self._by_group.items()
            for name, topic_id in topics.items()
            for partition, committed in by_topic.get(name, {}).items()
            if committed.is_for(topic_id)
        ]

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Take over a record; a tombstone of what isn't there is passed over."""
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            return
        by_topic = self._by_group.setdefault(key.group, {})
        by_topic.setdefault(key.topic, {})[key.partition] = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp_ms,
            value.expire_timestamp_ms,
            value.topic_id,
        )

    def forget_groups(self, group_ids: Iterable[str]) -> None:
        """These groups are to be loaded anew."""
        for group_id in group_ids:
            self._by_group.pop(group_id, None)

    def _remove(self, group_id: str, topic_name: str, partition: int) -> None:
        by_topic = self._by_group.get(group_id, {})
        partitions = by_topic.get(topic_name, {})
        partitions.pop(partition, None)
        if not partitions:
            by_topic.pop(topic_name, None)
        if not by_topic:
            self._by_group.pop(group_id, None)
