"""The records that one consumer holds from one broker, and the acknowledgements still to be sent (pure).

The ledger lists every record acquired in the share session, until the broker has confirmed its
acknowledgement. Acknowledgements are collected into lots, taken to be sent, and completed with the broker's
answer. When the session is lost, all its locks are lost: held records are lost, and queued acknowledgements
have failed. The offsets may have been acquired anew by then, and the broker would apply an old
acknowledgement to the new delivery. So lots in flight are sent again only as a repetition of the same request
of the same session, and the answer to that is final.

Bounds: the broker bounds the locked records (`share.partition.max.record.locks`). A refused lot is halved
until one record is left, or it is sent again up to `RETRIES_MAX` times. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from barnabas.client.share.acknowledgements import (
    Acknowledgement,
    AcknowledgeType,
    Barrier,
    Confirmation,
    Lot,
    TransactionPart,
)
from barnabas.client.share.held_record import HeldRecord, RecordState, Renewal, fate_of
from barnabas.client.share.renewals import Renewals
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

RETRIES_MAX: Final = 10
"""Retries of a lot after temporary errors, unless its locks end before."""

_PARTITION_GONE: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
    }
)
"""The broker does not serve the partition any more, and holds no locks in it."""


class Ledger:
    """The records of one share session, and of the sessions that replace it."""

    def __init__(self, on_confirmed: Callable[[Confirmation], None], on_pending: Callable[[], None]) -> None:
        """`on_pending` is called when the queue stops being empty, and for each renewal."""
        self._on_confirmed = on_confirmed
        self._on_pending = on_pending
        self._held: dict[TopicIdPartition, dict[int, HeldRecord]] = {}
        self._queued: dict[TopicIdPartition, deque[Lot]] = {}
        self._in_flight: set[Lot] = set()
        self._renewals = Renewals()

    @property
    def has_pending(self) -> bool:
        """Whether a lot waits to be sent."""
        return bool(self._queued)

    @property
    def has_renewals(self) -> bool:
        """Whether a waiting lot renews locks."""
        return any(lot.renews for lots in self._queued.values() for lot in lots)

    @property
    def is_empty(self) -> bool:
        """Whether no record is held and no acknowledgement is queued or in flight."""
        return not (self._held or self._queued or self._in_flight)

    @property
    def held_count(self) -> int:
        """The records that are held."""
        return sum(map(len, self._held.values()))

    def acquire(self, records: Iterable[HeldRecord]) -> None:
        """Add new records. An older delivery of the same offset is lost: its lock has ended at the broker."""
        for record in records:
            held = self._held.setdefault(record.topic_id_partition, {})
            older = held.get(record.offset)
            if older is not None:
                older.state = RecordState.LOST
            held[record.offset] = record

    def settle(
        self,
        record: HeldRecord,
        acknowledge_type: AcknowledgeType,
        delay_ms: int | None = None,
        part: TransactionPart | None = None,
    ) -> None:
        """Acknowledge a held record: accept, release or reject it, perhaps in a transaction. A release
        outside of transactions may ask for a delay. It ends the locks of the records that are taken back with
        this one.
        """
        assert record.state is RecordState.HELD, record.state
        record.state = RecordState.SETTLED
        verdict = Acknowledgement(acknowledge_type, record, delay_ms)
        lot = self._queue(record.topic_id_partition, record.offset, verdict, part)
        if acknowledge_type is AcknowledgeType.RELEASE:
            self.take_back_behind(record)
            if part is None:
                lot.take_back_behind(record)

    def renew(self, record: HeldRecord) -> Renewal:
        """Ask to renew the lock of a held record, or join a renewal that is already outstanding.

        It is answered once a barrier that is created now is passed.
        """
        assert record.state is RecordState.HELD, record.state
        renewal = record.renewal
        if renewal is None or renewal.code is not None:
            renewal = record.renewal = Renewal()
            asked = Acknowledgement(AcknowledgeType.RENEW, record)
            self._queue(record.topic_id_partition, record.offset, asked)
        return renewal

    def acknowledge_unheld(
        self, partition: TopicIdPartition, offsets: Iterable[int], acknowledge_type: AcknowledgeType
    ) -> None:
        """Acknowledge acquired offsets for which the reader gets no record."""
        for offset in offsets:
            self._queue(partition, offset, Acknowledgement(acknowledge_type, None))

    def take_back_behind(self, record: HeldRecord) -> None:
        """This record is not processed: drop the records that the broker takes back with it. It needs no
        acknowledgement of theirs.
        """
        if record.run is None:
            return
        for other in list(self._held.get(record.topic_id_partition, {}).values()):
            if other.state is RecordState.HELD and record.takes_back(other):
                other.state = RecordState.TAKEN_BACK
                self._forget(other)

    def renew_due(self, now_ms: int, lock_ms: int, hold_ms_max: int) -> None:
        """Renew the locks that are due; see `Renewals`."""
        for record in self._renewals.due(self._records(), now_ms, lock_ms, hold_ms_max):
            self.renew(record)

    def expire(self, now_ms: int) -> None:
        """Drop held records that were not acknowledged before their lock ended."""
        for record in list(self._records()):
            if record.state is RecordState.HELD and record.lock_deadline_ms <= now_ms:
                record.state = RecordState.LOST
                self._forget(record)
                self.take_back_behind(record)

    def release_all(self, now_ms: int) -> None:
        """Release all held records that were not acknowledged; these releases are reported to no reader.

        They ask for no delay, because the end of a consumer is no failure of its records.
        """
        self.expire(now_ms)
        for record in list(self._records()):
            if record.state is RecordState.HELD:
                record.state = RecordState.RELEASED
                self._forget(record)
                verdict = Acknowledgement(AcknowledgeType.RELEASE, None, delay_ms=0)
                self._queue(record.topic_id_partition, record.offset, verdict)

    def barrier(self, on_passed: Callable[[], None]) -> None:
        """Call back once all acknowledgements made so far are answered."""
        barrier = Barrier(on_passed)
        for lot in self._lots():
            lot.wait(barrier)
        barrier.pass_if_open()

    def take(self, now_ms: int, *, with_renewals: bool, part: TransactionPart | None = None) -> list[Lot]:
        """The lots to send now, at most one for each partition; they are in flight from here on. They are
        those of one part of a transaction, or ordinary ones.

        Acknowledgements of records whose lock has ended are left out, and fail.
        """
        taken: list[Lot] = []
        for partition in list(self._queued):
            lots = self._queued[partition]
            first = lots[0]
            if first.not_before_ms > now_ms or first.part is not part or (first.renews and not with_renewals):
                continue
            lot = lots.popleft()
            if not lots:
                del self._queued[partition]
            self._drop_ended(lot, now_ms)
            if lot.acknowledgements:
                self._in_flight.add(lot)
                taken.append(lot)
            else:
                lot.answered()
        return taken

    def next_part(self, now_ms: int) -> TransactionPart | None:
        """The part of a transaction that may be sent now; None if there is none."""
        due = (lots[0].part for lots in self._queued.values() if lots[0].not_before_ms <= now_ms)
        return next((part for part in due if part is not None), None)

    def next_retry_ms(self) -> int | None:
        """When the earliest lot may be sent; None if there is none."""
        return min((lots[0].not_before_ms for lots in self._queued.values()), default=None)

    def complete(
        self,
        lot: Lot,
        code: ErrorCode,
        message: str | None,
        *,
        lock_deadline_ms: int,
        retry_at_ms: int | None,
    ) -> None:
        """The broker's answer to a lot in flight; NONE if the broker accepted all of it.

        `lock_deadline_ms` is the end of the locks that the lot renewed. `retry_at_ms` is the time of the next
        try if the error is temporary; None if the session of the lot is lost, so that the answer is final.
        """
        if lot not in self._in_flight:
            return  # the session was lost meanwhile
        self._in_flight.discard(lot)
        if retry_at_ms is not None and self._is_worth_halving(lot, code):
            self._requeue(lot.partition, lot.halves())
            lot.answered()
            return
        passes = code.retriable and code not in _PARTITION_GONE
        if retry_at_ms is not None and passes and lot.retry_count < RETRIES_MAX:
            lot.retry_count += 1
            lot.is_closed = True
            lot.not_before_ms = retry_at_ms
            self._requeue(lot.partition, (lot,))
            return
        if lot.renews:
            self._complete_renewals(lot, code, message, lock_deadline_ms)
        else:
            self._complete_acknowledgements(lot, code, message)
        lot.answered()
        if code in _PARTITION_GONE:
            self.lose(lot.partition, code)

    def lose(self, partition: TopicIdPartition, code: ErrorCode) -> None:
        """The locks in this partition are lost, so everything queued for it has failed."""
        for record in self._held.pop(partition, {}).values():
            record.state = RecordState.LOST
        for lot in self._queued.pop(partition, ()):
            self._fail(lot, code)

    def lose_all(self, code: ErrorCode, *, repeated: Collection[Lot] = ()) -> None:
        """The share session is lost, and every lock with it. The lots in `repeated` stay in flight."""
        for partition in list(self._held | self._queued):
            self.lose(partition, code)
        self.give_up(self._in_flight.difference(repeated), code)
        self._renewals.begin_anew()

    def give_up(self, lots: Iterable[Lot], code: ErrorCode) -> None:
        """There will be no answer to these lots; those that are not in flight any more are ignored."""
        for lot in list(lots):
            if lot in self._in_flight:
                self._in_flight.discard(lot)
                self._fail(lot, code)

    def _records(self) -> Iterator[HeldRecord]:
        for held in self._held.values():
            yield from held.values()

    def _lots(self) -> Iterator[Lot]:
        yield from self._in_flight
        for lots in self._queued.values():
            yield from lots

    def _queue(
        self,
        partition: TopicIdPartition,
        offset: int,
        acknowledgement: Acknowledgement,
        part: TransactionPart | None = None,
    ) -> Lot:
        """Returns the lot with the acknowledgement."""
        renews = acknowledgement.acknowledge_type is AcknowledgeType.RENEW
        is_first = not self._queued
        lots = self._queued.setdefault(partition, deque())
        last = lots[-1] if lots else None
        is_alike = last is not None and last.renews == renews and last.part is part
        if last is None or not is_alike or last.is_closed or offset in last.acknowledgements:
            last = Lot(partition, {}, renews=renews, part=part)
            lots.append(last)
        last.acknowledgements[offset] = acknowledgement
        if is_first or renews:
            self._on_pending()
        return last

    def _is_worth_halving(self, lot: Lot, code: ErrorCode) -> bool:
        """Whether one record may be the reason why the broker has refused all of them."""
        if len(lot.acknowledgements) == 1:
            return False
        if code is ErrorCode.invalid_record_state:
            return not (lot.renews and self._renewals.are_disabled)
        return code is ErrorCode.invalid_request and lot.has_delays

    def _requeue(self, partition: TopicIdPartition, lots: Sequence[Lot]) -> None:
        self._queued.setdefault(partition, deque()).extendleft(reversed(lots))
        self._on_pending()

    def _drop_ended(self, lot: Lot, now_ms: int) -> None:
        """Remove acknowledgements that would be refused, and renewals of records no longer held."""
        ended: dict[str, list[int]] = {}
        for offset, (acknowledge_type, record, _) in list(lot.acknowledgements.items()):
            if record is None or not _has_ended(record, acknowledge_type, now_ms):
                continue
            del lot.acknowledgements[offset]
            if acknowledge_type is AcknowledgeType.RENEW:
                self._renewals.refuse((record,), ErrorCode.invalid_record_state, fate_of(record))
            else:
                ended.setdefault(fate_of(record), []).append(offset)
                self._forget(record)
        for message, offsets in ended.items():
            self._confirm(lot, offsets, ErrorCode.invalid_record_state, message)

    def _complete_renewals(
        self, lot: Lot, code: ErrorCode, message: str | None, lock_deadline_ms: int
    ) -> None:
        records = lot.records()
        if code is ErrorCode.none:
            self._renewals.grant(records, lock_deadline_ms)
        elif code is ErrorCode.invalid_record_state and len(records) == 1:
            self._renewals.refuse_alone(records[0], message)
        else:
            self._renewals.refuse(records, code, message)

    def _complete_acknowledgements(self, lot: Lot, code: ErrorCode, message: str | None) -> None:
        for record in lot.records():
            if code is not ErrorCode.none:
                record.state = RecordState.LOST
            self._forget(record)
        self._confirm(lot, _offsets_of_records(lot), code, message)

    def _fail(self, lot: Lot, code: ErrorCode) -> None:
        if lot.renews:
            self._renewals.refuse(lot.records(), code, None)
        else:
            self._confirm(lot, _offsets_of_records(lot), code)
        lot.answered()

    def _forget(self, record: HeldRecord) -> None:
        """Remove a record, unless a newer delivery has replaced it."""
        held = self._held.get(record.topic_id_partition)
        if held is not None and held.get(record.offset) is record:
            del held[record.offset]
            if not held:
                del self._held[record.topic_id_partition]

    def _confirm(self, lot: Lot, offsets: Sequence[int], code: ErrorCode, message: str | None = None) -> None:
        """Report an answer: to the transaction of the lot, whose end decides, or as an outcome."""
        if offsets:
            confirmed = self._on_confirmed if lot.part is None else lot.part.note
            confirmed(Confirmation(lot.partition, offsets, code, message))


def _has_ended(record: HeldRecord, acknowledge_type: AcknowledgeType, now_ms: int) -> bool:
    if record.lock_deadline_ms <= now_ms:
        record.state = RecordState.LOST
    if acknowledge_type is AcknowledgeType.RENEW:
        return record.state is not RecordState.HELD
    return record.state in (RecordState.LOST, RecordState.TAKEN_BACK)


def _offsets_of_records(lot: Lot) -> list[int]:
    return sorted(record.offset for record in lot.records())
