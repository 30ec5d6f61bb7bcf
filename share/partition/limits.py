"""The limits that a share group's configuration sets, and how records near the delivery limit are throttled.

KIP-932 "In-flight records" and "Batching", KIP-1240 for the group's own limits. The values are passed into
each call, since they may change while a group runs. Reading configuration is done elsewhere.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class AcquireMode(IntEnum):
    """ShareAcquireMode of ShareFetch (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class ShareLimits(NamedTuple):
    """One group's limits at this moment."""

    delivery_count_max: int = 5
    """Deliveries of a record before it is archived (share.delivery.count.limit)."""
    lock_duration_ms: int = 30_000
    """How long an acquisition lock holds (share.record.lock.duration.ms)."""
    record_locks_max: int = 2_000
    """Data records between SPSO and SPEO above which no new ones are acquired
    (share.partition.max.record.locks)."""
    renew_enabled: bool = True
    """Whether RENEW acknowledgements are allowed (share.renew.acknowledge.enable)."""


_UNTHROTTLED_COUNT_MIN = 2


def throttle_count_min(delivery_count_max: int) -> int:
    """The delivery count from which on a record is delivered in smaller and smaller company."""
    return max(_UNTHROTTLED_COUNT_MIN, (delivery_count_max + 1) // 2)


def throttled_records_max(record_count: int, delivery_count: int, count_min: int) -> int:
    """How many of an in-flight batch's `record_count` records go out together at this delivery count.

    Each failed delivery from `count_min` on halves them, so that one bad record cannot take the others along.
    """
    return max(1, record_count >> (delivery_count - count_min + 1))


def is_delivered_alone(delivery_count: int, delivery_count_max: int) -> bool:
    """Whether a record with this number of deliveries is delivered alone, because the next delivery is its
    last.
    """
    return delivery_count_max > _UNTHROTTLED_COUNT_MIN and delivery_count == delivery_count_max - 1
