"""The shares of partitions in the records of consumer groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.protocol.consumer_group_records import OwnedPartitions, SharedPartition, TargetPartitions
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange


def shares_of(topics: Iterable[TargetPartitions | OwnedPartitions]) -> Shares:
    """The shares in a record; older records have none."""
    shares = {
        TopicIdPartition(topic.topic_id, share.partition): HashRange(share.first_hash, share.last_hash)
        for topic in topics
        for share in topic.shares
    }
    return shares or NO_SHARES


def shared_partitions(
    topic_id: UUID, partitions: Iterable[int], shares: Mapping[TopicIdPartition, HashRange]
) -> tuple[SharedPartition, ...]:
    """The shares of one topic's partitions for a record."""
    if not shares:
        return ()
    found = ((partition, shares.get(TopicIdPartition(topic_id, partition))) for partition in partitions)
    return tuple(
        SharedPartition(partition=partition, first_hash=share.first_hash, last_hash=share.last_hash)
        for partition, share in found
        if share is not None
    )
