"""The limits in a share group's configuration, and the throttling of records near the delivery limit.

KIP-932 "In-flight records" and "Batching", KIP-1240 for the group's own limits. The values are passed into
each call, because they may change while a group runs. Reading configuration is done elsewhere.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, LetterPlace

LOCK_DURATION_MIN_MS = 1_000
"""The shortest lock that a group or a member may ask for."""


class AcquireMode(IntEnum):
    """ShareAcquireMode of ShareFetch (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class RetryBackoff(NamedTuple):
    """The delays before records are delivered again; see `waits.DueTimes`."""

    base_ms: int = 0
    """After the first delivery (share.retry.backoff.ms); 0: records are delivered again at once."""
    max_ms: int = 60_000
    """No delay is longer, and no consumer can ask for a longer one (share.retry.backoff.max.ms)."""
    multiplier: float = 2.0
    """The factor with each further delivery (share.retry.backoff.multiplier)."""
    jitter: float = 0.2
    """The greatest part of a delay by which it is shortened at random (share.retry.backoff.jitter)."""


NO_BACKOFF = RetryBackoff()


class PriorityLimits(NamedTuple):
    """The priorities of records; see `priorities`."""

    header_name: str = ""
    """The header with a record's priority (share.priority.header); empty: records have no priorities."""
    window_records: int = 1_000
    """The records that can be delivered, among which the leader chooses the most urgent ones
    (share.priority.window.records)."""
    overtaken_max: int = 1_000
    """From this number of overtaking deliveries on, a record comes first (share.priority.overtaken.max)."""


NO_PRIORITIES = PriorityLimits()


class RecordTiming(NamedTuple):
    """The times of records at which they are delivered and archived; see `leader/timed_reads`.

    A record's time is its timestamp. All are off by default.
    """

    delay_ms: int = 0
    """The age from which on new records are delivered (share.delivery.delay.ms)."""
    delay_header: bytes | None = None
    """The record header with a delay of its own for the record (share.delay.header)."""
    delayed_records_max: int = 10_000
    """The most delayed records in flight (share.delayed.records.max)."""
    ttl_ms: int = 0
    """The age from which on records are archived (share.record.ttl.ms)."""


NO_TIMING = RecordTiming()
"""The timing of all groups without such a setting, so that `is` tells them apart."""


class ShareLimits(NamedTuple):
    """One group's limits at this moment."""

    delivery_count_max: int = 5
    """Deliveries of a record before it is archived (share.delivery.count.limit)."""
    lock_duration_ms: int = 30_000
    """The duration of an acquisition lock (share.record.lock.duration.ms, or the member's own)."""
    record_locks_max: int = 2_000
    """Data records between SPSO and SPEO above which no new ones are acquired
    (share.partition.max.record.locks)."""
    renew_enabled: bool = True
    """Whether RENEW acknowledgements are allowed (share.renew.acknowledge.enable)."""
    key_run_max: int = 0
    """With share.order=key the most records of one key that a member holds
    (share.order.key.in.flight.max); 0 without an order of keys."""
    letter_place: LetterPlace | None = None
    """Where the dead letter of a record goes that is archived now; None if the group has no dead letters
    (errors.deadletterqueue.topic.name, KIP-1191)."""
    retry_backoff: RetryBackoff = NO_BACKOFF
    priority: PriorityLimits = NO_PRIORITIES
    timing: RecordTiming = NO_TIMING

    @property
    def is_ordered(self) -> bool:
        """Whether records are delivered in an order of their keys or priorities."""
        return bool(self.key_run_max or self.priority.header_name)

    def ends_after(self, delivery_count: int) -> bool:
        """Whether a record whose delivery with this number fails is given up instead of delivered again.

        A delivery fails by a RELEASE (`acknowledgement`), or when its lock ends (`locks`).
        """
        return delivery_count >= self.delivery_count_max


ACKNOWLEDGED_LETTER_CAUSES = (Cause.REJECT, Cause.DELIVERY_LIMIT)
"""The causes by which an acknowledgement leads to a dead letter, if the group has them.

`locks` has the other ways to a dead letter: ended locks at the limit, expired records, administrators.
"""


_UNTHROTTLED_COUNT_MIN = 2


def throttle_count_min(delivery_count_max: int) -> int:
    """The delivery count from which on a record is delivered with fewer and fewer others."""
    return max(_UNTHROTTLED_COUNT_MIN, (delivery_count_max + 1) // 2)


def throttled_records_max(record_count: int, delivery_count: int, count_min: int) -> int:
    """The number of records that are delivered together at this delivery count, of the `record_count` records
    of an in-flight batch.

    Each failed delivery from `count_min` on halves it, so that one bad record cannot affect the others.
    """
    return max(1, record_count >> (delivery_count - count_min + 1))


def is_delivered_alone(delivery_count: int, delivery_count_max: int) -> bool:
    """Whether a record with this number of deliveries is delivered alone, because the next delivery is its
    last.
    """
    return delivery_count_max > _UNTHROTTLED_COUNT_MIN and delivery_count == delivery_count_max - 1
