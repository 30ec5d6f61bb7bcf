"""The share-partitions of the groups, as the coordinator knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.share_group.share_group import TopicPartitionSet
from barnabas.protocol.identity import SharePartitionKey


class SharedPartitions(Protocol):
    """The share group coordinator knows them."""

    @property
    def all_loaded(self) -> bool:
        """Whether all groups are known."""
        ...

    def list_groups(self) -> Sequence[ListedGroup]: ...

    def initialised_partitions(self, group_id: str) -> Mapping[UUID, TopicPartitionSet]:
        """The partitions with share state in the group."""
        ...


def share_partitions_of(groups: SharedPartitions, group_id: str) -> Iterator[SharePartitionKey]:
    """The share-partitions of a group that have state, by topic."""
    for topic_id, found in groups.initialised_partitions(group_id).items():
        for partition in sorted(found.partitions):
            yield SharePartitionKey(group_id, topic_id, partition)
