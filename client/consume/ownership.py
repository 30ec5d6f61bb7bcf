"""The unit in which a consumer group assigns its partitions to members (pure, KIP-848).

It is a whole partition, or a share of one: the records whose keys have a hash in a range. A share with
another range is another ownership, so the member gives the former one up first. Heartbeats name partitions
without ranges, because the coordinator knows the ranges that it has assigned. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions as OwnedTopicPartitions

from barnabas.protocol.extended.consumer_group_heartbeat_v1 import Assignment, TopicPartitions
from barnabas.protocol.extended.packed import unpack_shares
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import i32
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange


class Ownership(NamedTuple):
    """A partition, and the hashes of the keys that the member reads."""

    partition: TopicIdPartition
    hashes: HashRange = ALL_HASHES

    @property
    def is_share(self) -> bool:
        """Whether other members read the other records of the partition."""
        return self.hashes != ALL_HASHES


def assigned(assignment: Assignment) -> frozenset[Ownership]:
    """The ownerships in a heartbeat's answer. Raises `ApiError` for malformed ranges."""
    return frozenset(
        ownership
        for topic in assignment.topic_partitions
        if topic.topic_id is not None
        for ownership in _of_topic(topic.topic_id, topic)
    )


def _of_topic(topic_id: UUID, topic: TopicPartitions) -> Iterator[Ownership]:
    shares = unpack_shares(topic.hash_ranges or b"")
    for index in topic.partitions:
        yield Ownership(TopicIdPartition(topic_id, index), shares.get(index, ALL_HASHES))


def reported(owned: Iterable[Ownership]) -> tuple[OwnedTopicPartitions, ...]:
    """The ownerships as a heartbeat reports them."""
    by_topic: dict[UUID, list[i32]] = {}
    for (topic_id, index), _ in sorted(owned):
        by_topic.setdefault(topic_id, []).append(i32(index))
    return tuple(
        OwnedTopicPartitions(topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, indexes in by_topic.items()
    )
