"""A record that the broker has locked for this consumer (pure): until when, and what became of it."""

from __future__ import annotations

from enum import Enum, auto

from barnabas.protocol.identity import TopicIdPartition


class RecordState(Enum):
    HELD = auto()
    """Locked for this consumer, as far as it knows, and not acknowledged."""
    SETTLED = auto()
    """Accepted, released or rejected; the broker may not have heard of it yet."""
    LOST = auto()
    """The lock has ended: the record is delivered again, to whomever."""


class HeldRecord:
    """One acquired record. Times are the loop's, in milliseconds."""

    __slots__ = (
        "acquired_at_ms",
        "delivery_count",
        "lock_deadline_ms",
        "offset",
        "state",
        "topic_id_partition",
    )

    def __init__(
        self,
        topic_id_partition: TopicIdPartition,
        offset: int,
        delivery_count: int,
        acquired_at_ms: int,
        lock_deadline_ms: int,
    ) -> None:
        self.topic_id_partition = topic_id_partition
        self.offset = offset
        self.delivery_count = delivery_count
        """Deliveries of this record so far, this one among them."""
        self.acquired_at_ms = acquired_at_ms
        self.lock_deadline_ms = lock_deadline_ms
        self.state = RecordState.HELD
