"""The keys of partitions, share-partitions and producers in the whole broker.

A topic is identified by its id, because a topic that was deleted and created again with the same name is
another topic. Only transactions identify it by name.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias
from uuid import UUID

Place: TypeAlias = tuple[int, int]
"""A partition as a key that is quick to hash, unlike Python's UUIDs: the topic's id as a number, and the
index.
"""
SharePlace: TypeAlias = tuple[str, int, int]
"""The same for a share-partition; the group is the first."""


class TopicIdPartition(NamedTuple):
    """One partition of one topic."""

    topic_id: UUID
    partition: int

    @property
    def place(self) -> Place:
        return self.topic_id.int, self.partition


class TopicNamePartition(NamedTuple):
    """One partition of the topic that has this name now, as transactions identify it."""

    topic: str
    partition: int


def by_topic(partitions: Iterable[TopicNamePartition]) -> dict[str, list[int]]:
    """The partitions' indexes by topic name, both ascending."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


class ProducerIdentity(NamedTuple):
    """A producer id, and the epoch that separates its successive users (KIP-98)."""

    producer_id: int
    producer_epoch: int


class SharePartitionKey(NamedTuple):
    """One partition in one share group (KIP-932, "Share-partition")."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.partition)

    @property
    def place(self) -> SharePlace:
        return self.group_id, self.topic_id.int, self.partition
