"""The common parts of the target assignments of share groups and consumer groups: when one is due, its
records, and the order in which members and topics go to the assignors (KIP-848, KIP-932).

The order is that of Kafka's hash maps, because an assignor's result depends on it. Pure.
"""

from collections.abc import Collection, Iterable
from typing import Final

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.java_hash_map import (
    default_capacity,
    string_hash,
    timeline_order,
    walk_order,
)
from barnabas.protocol.topic_partitions import TopicPartitions

NO_ASSIGNMENT_EPOCH: Final = -1
"""The assignment epoch of a group that is being deleted."""

NEVER_ASSIGNED: Final = 0
"""A timestamp after which the next assignment is due at once."""


def assignment_of(topics: Iterable[TopicPartitions]) -> Assignment:
    """The assignment in a record: ascending partitions, no topic without partitions."""
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics if topic.partitions}


def assignment_is_due(last_ms: int, interval_ms: int, wall_ms: int) -> bool:
    """Whether the last assignment is long enough ago (KIP-1263)."""
    # A last assignment in the future means that the clock was set back.
    return last_ms == NEVER_ASSIGNED or not last_ms <= wall_ms < last_ms + interval_ms


def in_map_order(names: Collection[str]) -> list[str]:
    """Names in the order of a Java hash map; two in one bucket are in the order of the names."""
    return walk_order(sorted(names), string_hash, default_capacity(len(names)))


def members_in_map_order(member_ids: Collection[str], updated_id: str) -> list[str]:
    """A group's members in the order in which Kafka's assignors get them; one of them may be new.

    Members with equal places are in the order of their ids, because the order of joining does not survive a
    restart.
    """
    known = timeline_order(sorted(member_ids))
    all_ids = known if updated_id in member_ids else [*known, updated_id]
    return walk_order(all_ids, string_hash, default_capacity(len(all_ids)))
