"""The keys by which partitions and share-partitions are known everywhere in the broker.

A topic is always named by its id here: a topic deleted and made again under the same name is another topic.
"""

from typing import NamedTuple
from uuid import UUID


class TopicIdPartition(NamedTuple):
    """One partition of one topic."""

    topic_id: UUID
    partition: int


class SharePartitionKey(NamedTuple):
    """One partition as one share group sees it (KIP-932, "Share-partition")."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.partition)
