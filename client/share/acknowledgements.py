"""Acknowledgements: their types, and the lots in which they are sent (pure, KIP-932).

A `Lot` holds the acknowledgements of one partition that one request carries. The broker accepts a lot as a
whole or refuses it as a whole, so one record whose lock has ended makes it refuse all the others. A lot that
was refused for this reason is halved, again and again, until that record is alone. A `Barrier` reports that
all lots which it waits for are answered. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.client.share.held_record import HeldRecord, RecordState
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import TopicIdPartition


class AcknowledgeType(IntEnum):
    """The verdict on a record; the numbers are the wire's."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    """Deliver it again, unless its deliveries are used up."""
    REJECT = 3
    """Never deliver it again."""
    RENEW = 4
    """Start its lock again (KIP-1222)."""


class Confirmation(NamedTuple):
    """The broker's answer for some offsets of a partition: offsets ascending, code NONE for success."""

    partition: TopicIdPartition
    offsets: Sequence[int]
    code: ErrorCode
    message: str | None = None


class Acknowledgement(NamedTuple):
    """The acknowledgement of one offset; gaps and unreadable records have no record."""

    acknowledge_type: AcknowledgeType
    record: HeldRecord | None
    delay_ms: int | None = None
    """The delay that a release asks for: 0 for none, None for that of the group's settings."""


class TransactionPart:
    """Acknowledgements that one call adds to a producer's transaction, and the broker's first refusal."""

    __slots__ = ("refusal", "transaction")

    def __init__(self, transaction: AcknowledgingTransaction) -> None:
        self.transaction = transaction
        self.refusal: Confirmation | None = None

    def note(self, answer: Confirmation) -> None:
        """The broker has answered for some of the records."""
        if answer.code is not ErrorCode.none and self.refusal is None:
            self.refusal = answer


class Barrier:
    """Calls back once every lot that it waits for is answered, or immediately if there are none."""

    __slots__ = ("_left", "_on_passed")

    def __init__(self, on_passed: Callable[[], None]) -> None:
        self._left = 0
        self._on_passed = on_passed

    def expect(self) -> None:
        self._left += 1

    def note_answered(self) -> None:
        self._left -= 1
        self.pass_if_open()

    def pass_if_open(self) -> None:
        if not self._left:
            self._on_passed()


class Lot:
    """Acknowledgements of one partition, by offset, that are sent together."""

    __slots__ = (
        "acknowledgements",
        "barriers",
        "is_closed",
        "not_before_ms",
        "part",
        "partition",
        "renews",
        "retry_count",
    )

    def __init__(
        self,
        partition: TopicIdPartition,
        acknowledgements: dict[int, Acknowledgement],
        *,
        renews: bool,
        part: TransactionPart | None = None,
        is_closed: bool = False,
    ) -> None:
        """`renews`: all of them renew locks, or none does; such requests fetch nothing (KIP-1222). `part`:
        all of them join this part of a transaction; such a request has no others.

        A closed lot accepts no more acknowledgements, because the broker has refused it once.
        """
        self.partition = partition
        self.acknowledgements = acknowledgements
        self.renews = renews
        self.part = part
        self.is_closed = is_closed
        self.not_before_ms = 0
        self.retry_count = 0
        self.barriers: list[Barrier] = []

    def records(self) -> list[HeldRecord]:
        """The records of this lot, without the offsets that have none."""
        return [record for _, record, _ in self.acknowledgements.values() if record is not None]

    @property
    def has_delays(self) -> bool:
        """Whether a release asks for a delay, which the broker may not allow."""
        return any(acknowledgement.delay_ms for acknowledgement in self.acknowledgements.values())

    def take_back_behind(self, record: HeldRecord) -> None:
        """This lot releases the record: the broker counts later records of its run as released, too, and not
        as accepted or rejected.
        """
        for acknowledge_type, other, _ in self.acknowledgements.values():
            is_final = acknowledge_type in (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
            if other is not None and is_final and record.takes_back(other):
                other.state = RecordState.TAKEN_BACK

    def wait(self, barrier: Barrier) -> None:
        """Let a barrier wait for this lot."""
        barrier.expect()
        self.barriers.append(barrier)

    def answered(self) -> None:
        """Report to the barriers that this lot is finished, with or without an error."""
        barriers, self.barriers = self.barriers, []
        for barrier in barriers:
            barrier.note_answered()

    def halves(self) -> tuple[Lot, Lot]:
        """Replace this lot by two, with the lower and the upper offsets; barriers wait for both."""
        offsets = sorted(self.acknowledgements)
        middle = len(offsets) // 2
        lower, upper = (
            Lot(
                self.partition,
                {offset: self.acknowledgements[offset] for offset in some},
                renews=self.renews,
                part=self.part,
                is_closed=True,
            )
            for some in (offsets[:middle], offsets[middle:])
        )
        for barrier in self.barriers:
            lower.wait(barrier)
            upper.wait(barrier)
        return lower, upper


def release_delays(acknowledgements: Mapping[int, Acknowledgement]) -> tuple[ReleaseDelay, ...]:
    """Runs of neighbouring offsets that ask for one and the same delay, ascending."""
    delays: list[ReleaseDelay] = []
    for offset in sorted(acknowledgements):
        delay_ms = acknowledgements[offset].delay_ms
        if delay_ms is None:
            continue
        if delays and delays[-1][1:] == (offset - 1, delay_ms):
            delays[-1] = delays[-1]._replace(last_offset=offset)
        else:
            delays.append(ReleaseDelay(offset, offset, delay_ms))
    return tuple(delays)


_TYPES: Final[Mapping[AcknowledgeType, bytes]] = {
    acknowledge_type: bytes((acknowledge_type,)) for acknowledge_type in AcknowledgeType
}


def ack_batches(acknowledgements: Mapping[int, Acknowledgement]) -> list[AckBatch]:
    """Runs of neighbouring offsets of one type, ascending, in the form of the wire."""
    batches: list[AckBatch] = []
    first_offset = last_offset = -2
    run_type: AcknowledgeType | None = None
    for offset in sorted(acknowledgements):
        acknowledge_type = acknowledgements[offset].acknowledge_type
        if offset == last_offset + 1 and acknowledge_type is run_type:
            last_offset = offset
            continue
        if run_type is not None:
            batches.append(AckBatch(first_offset, last_offset, _TYPES[run_type]))
        first_offset = last_offset = offset
        run_type = acknowledge_type
    if run_type is not None:
        batches.append(AckBatch(first_offset, last_offset, _TYPES[run_type]))
    return batches
