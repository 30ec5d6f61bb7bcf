"""The last target assignment in a group's records: its epoch, its partitions, and the time at which the next
one is due (KIP-848, KIP-932). Pure.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.protocol.consumer_group_records import ConsumerGroupTargetAssignmentMetadataValue
from barnabas.protocol.share_group_records import ShareGroupTargetAssignmentMetadataValue
from barnabas.protocol.topic_partitions import TopicPartitions
from barnabas.runtime.moment import MonotonicOf

NO_ASSIGNMENT_EPOCH: Final = -1
"""The assignment epoch of a group that is being deleted."""

NEVER_ASSIGNED: Final = 0
"""The time in a record after which the next assignment is due at once."""


def assignment_of(topics: Iterable[TopicPartitions]) -> Assignment:
    """The assignment in a record: ascending partitions, no topic without partitions."""
    return {topic.topic_id: tuple(sorted(topic.partitions)) for topic in topics if topic.partitions}


def assigned_at_ms(
    value: ConsumerGroupTargetAssignmentMetadataValue | ShareGroupTargetAssignmentMetadataValue | None,
    monotonic_of: MonotonicOf,
) -> int | None:
    """When (monotonic) the target in the record was computed; None if the next one is due at once."""
    if value is None or value.assignment_timestamp_ms == NEVER_ASSIGNED:
        return None
    return monotonic_of(value.assignment_timestamp_ms)


def assignment_is_due(assigned_at_ms: int | None, interval_ms: int, now_ms: int) -> bool:
    """Whether the last assignment is long enough ago (KIP-1263)."""
    if assigned_at_ms is None:
        return True
    # A heartbeat may be older than an assignment for which it has waited.
    return max(now_ms - assigned_at_ms, 0) >= interval_ms
