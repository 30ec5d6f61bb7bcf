"""The unit in which a consumer group assigns its partitions to members (pure, KIP-848).

Every part of the consumer uses the name `Ownership` for such a unit, so that only this module has to change
if members get something smaller than a partition. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions
from kio.schema.consumer_group_heartbeat.v1.response import Assignment

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.primitive import i32

Ownership: TypeAlias = TopicIdPartition
"""A whole partition."""


def partition_of(ownership: Ownership) -> TopicIdPartition:
    """The partition from which the records are fetched."""
    return ownership


def assigned(assignment: Assignment) -> frozenset[Ownership]:
    """The ownerships in a heartbeat's answer."""
    return frozenset(
        TopicIdPartition(topic.topic_id, index)
        for topic in assignment.topic_partitions
        if topic.topic_id is not None
        for index in topic.partitions
    )


def reported(owned: Iterable[Ownership]) -> tuple[TopicPartitions, ...]:
    """The ownerships as a heartbeat reports them."""
    by_topic: dict[UUID, list[i32]] = {}
    for topic_id, index in sorted(owned):
        by_topic.setdefault(topic_id, []).append(i32(index))
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(indexes))
        for topic_id, indexes in by_topic.items()
    )
