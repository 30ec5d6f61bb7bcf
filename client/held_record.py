"""A record that the broker has locked for this consumer (pure): until when, and what became of it."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition


class RecordState(Enum):
    HELD = auto()
    """Locked for this consumer, as far as it knows, and not acknowledged."""
    SETTLED = auto()
    """Accepted, released or rejected; the broker may not have heard of it yet."""
    LOST = auto()
    """The lock has ended: the record is delivered again, to whomever."""
    RELEASED = auto()
    """Given back by the consumer, which was closed while its reader still had it."""


_FATES: Final = {
    RecordState.SETTLED: "The record was acknowledged before.",
    RecordState.LOST: "The lock had ended.",
    RecordState.RELEASED: "The consumer was closed, which released the record.",
}


class Renewal:
    """A wish that a lock begin anew; `code` is None until it is answered, and NONE if it was granted."""

    __slots__ = ("code", "message")

    def __init__(self) -> None:
        self.code: ErrorCode | None = None
        self.message: str | None = None


class HeldRecord:
    """One acquired record. Times are the loop's, in milliseconds."""

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
        """Deliveries of this record so far, this one among them."""
        self.acquired_at_ms = acquired_at_ms
        self.lock_deadline_ms = lock_deadline_ms
        self.state = RecordState.HELD
        self.renewal: Renewal | None = None
        """The one that is under way, or that was refused for this record alone."""


def fate_of(record: HeldRecord) -> str:
    """Why a record isn't held any more, in a sentence."""
    return _FATES[record.state]
