"""The keys by which partitions and share-partitions are known everywhere in the broker.

A topic is named by its id: a topic deleted and made again under the same name is another topic. Only
transactions know it by its name alone. And producers, which partitions know by their ids.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID


class TopicIdPartition(NamedTuple):
    """One partition of one topic."""

    topic_id: UUID
    partition: int


class TopicNamePartition(NamedTuple):
    """One partition of the topic that a name stands for now, as transactions know it."""

    topic: str
    partition: int


def by_topic(partitions: Iterable[TopicNamePartition]) -> dict[str, list[int]]:
    """The partitions' indexes by their topics' names, both ascending."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


class ProducerIdentity(NamedTuple):
    """Who produces: an id, and which of those that had it in turn (KIP-98)."""

    producer_id: int
    producer_epoch: int


class SharePartitionKey(NamedTuple):
    """One partition as one share group sees it (KIP-932, "Share-partition")."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.partition)
