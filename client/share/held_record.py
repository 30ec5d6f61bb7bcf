"""A record that the broker has locked for this consumer: the end of its lock, and its state. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition


class RecordState(Enum):
    HELD = auto()
    """Locked for this consumer, as far as it knows, and not acknowledged."""
    SETTLED = auto()
    """Accepted, released or rejected; the broker may not know it yet."""
    LOST = auto()
    """The lock has ended: the broker delivers the record again, to any member."""
    RELEASED = auto()
    """Released by the consumer, which was closed while the reader still held the record."""


_FATES: Final = {
    RecordState.SETTLED: "The record was acknowledged before.",
    RecordState.LOST: "The lock had ended.",
    RecordState.RELEASED: "The consumer was closed, which released the record.",
}


class Renewal:
    """A request to start a lock again; `code` is None until it is answered, and NONE if it was granted."""

    __slots__ = ("code", "message")

    def __init__(self) -> None:
        self.code: ErrorCode | None = None
        self.message: str | None = None


class HeldRecord:
    """One acquired record. Times are those of the event loop, in milliseconds."""

    __slots__ = (
        "acquired_at_ms",
        "delivery_count",
        "lock_deadline_ms",
        "offset",
        "renewal",
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
        """Deliveries of this record so far, including this one."""
        self.acquired_at_ms = acquired_at_ms
        self.lock_deadline_ms = lock_deadline_ms
        self.state = RecordState.HELD
        self.renewal: Renewal | None = None
        """The renewal that is outstanding, or that the broker refused for this record alone."""


def fate_of(record: HeldRecord) -> str:
    """Why the record is not held any more, as a sentence."""
    return _FATES[record.state]
