"""The last target assignment in a group's records: its epoch, its partitions, and the time at which the next
one is due (KIP-848, KIP-932). Pure.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.coordinator.assignor.assignment import Assignment
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
