"""A record that the broker has locked for this consumer: the end of its lock, and its state. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

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
    TAKEN_BACK = auto()
    """An earlier record of its run is delivered again: the broker delivers this one behind it."""


_FATES: Final = {
    RecordState.SETTLED: "The record was acknowledged before.",
    RecordState.LOST: "The lock had ended.",
    RecordState.RELEASED: "The consumer was closed, which released the record.",
    RecordState.TAKEN_BACK: "An earlier record of its key is delivered again before it.",
}


class Renewal:
    """A request to start a lock again; `code` is None until it is answered, and NONE if it was granted."""

    __slots__ = ("code", "message")

    def __init__(self) -> None:
        self.code: ErrorCode | None = None
        self.message: str | None = None


class Run(NamedTuple):
    """Records of a partition in their order. When the broker delivers one of them again, it takes back the
    later ones (`share.order.key.in.flight.max`).
    """

    key: int
    """The hash of their keys, or `ONE_RUN`."""
    delivery_count_limit: int
    """A record with so many deliveries is given up instead of delivered again."""


ONE_RUN: Final = -1
"""The key of a run with all held records of the partition."""


class HeldRecord:
    """One acquired record. Times are those of the event loop, in milliseconds."""

    __slots__ = (
        "acquired_at_ms",
        "delivery_count",
        "lock_deadline_ms",
        "offset",
        "renewal",
        "run",
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
        run: Run | None = None,
    ) -> None:
        self.topic_id_partition = topic_id_partition
        self.offset = offset
        self.delivery_count = delivery_count
        """Deliveries of this record so far, including this one."""
        self.acquired_at_ms = acquired_at_ms
        self.lock_deadline_ms = lock_deadline_ms
        self.run = run
        self.state = RecordState.HELD
        self.renewal: Renewal | None = None
        """The renewal that is outstanding, or that the broker refused for this record alone."""

    def takes_back(self, other: HeldRecord) -> bool:
        """Whether the broker takes `other` back, of the same partition, if this record is not processed."""
        run = self.run
        return (
            run is not None
            and run == other.run
            and self.offset < other.offset
            and self.delivery_count < run.delivery_count_limit
        )


def fate_of(record: HeldRecord) -> str:
    """Why the record is not held any more, as a sentence."""
    return _FATES[record.state]
