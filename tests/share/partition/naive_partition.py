"""A share-partition that keeps each offset by itself: slow and simple, to compare the real one with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Due, RecordState, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_inspection import RecordAction
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.waits import DUE_STEP_MS

AHEAD_MS = 1_000_005
"""The wall-clock time minus the monotonic time."""

FINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
TARGETS = (RecordState.ARCHIVED, RecordState.ACKNOWLEDGED, RecordState.AVAILABLE, RecordState.ARCHIVED)


@dataclass
class NaiveRecord:
    """One offset in flight."""

    state: RecordState
    delivery_count: int
    owner: str | None = None
    lock_deadline_ms: int = 0
    target: RecordState | None = None
    target_due_ms: int | None = None
    is_unrecorded: bool = False
    due_ms: int | None = None
    """An available record that waits until this time."""

    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE

    def may_be_taken(self) -> bool:
        return self.is_available() and self.due_ms is None

    def archive(self) -> None:
        self.state, self.owner, self.due_ms = RecordState.ARCHIVED, None, None
        self.is_unrecorded = True


@dataclass
class NaiveDecision:
    """The offsets whose acknowledgement is being recorded, and those final ones that the SPSO waits for."""

    targets: list[int] = field(default_factory=list[int])
    final_offsets: list[int] = field(default_factory=list[int])


class NaiveDemand(NamedTuple):
    """The demand of a fetch."""

    member: str
    records_max: int
    batch_size: int
    mode: AcquireMode
    limits: ShareLimits
    now_ms: int


@dataclass
class NaivePartition:
    """The rules of KIP-932 as Apache Kafka 4.3 has them, over one state per offset.

    `batches` are the data offsets of each batch in flight, `unread` those that a crash has left without a
    recorded delivery, `control` the control offsets of the log, `failed` the final offsets whose record could
    not be written.
    """

    spso: int = 0
    speo: int = 0
    records: dict[int, NaiveRecord] = field(default_factory=dict[int, NaiveRecord])
    batches: list[list[int]] = field(default_factory=list[list[int]])
    unread: set[int] = field(default_factory=set[int])
    control: set[int] = field(default_factory=set[int])
    failed: list[int] = field(default_factory=list[int])

    def data(self, first: int, last: int) -> list[int]:
        return [offset for offset in range(first, last + 1) if offset not in self.control]

    def window(self) -> int:
        return len(self.data(self.spso, self.speo - 1))

    def acquire(
        self,
        covered: set[int],
        producer_batches: Sequence[tuple[int, int]],
        reads: Iterable[int],
        demand: NaiveDemand,
    ) -> tuple[dict[int, int], NaiveDecision]:
        """The delivery count of each acquired offset, and the offsets found to be gone."""
        member, records_max, batch_size, mode, limits, now_ms = demand
        gone = self.archive_gaps(reads, producer_batches)
        taken, is_throttled = self._take_available(
            covered, producer_batches, records_max, batch_size, mode, limits
        )
        wanted = min(records_max - len(taken), limits.record_locks_max - self.window())
        for offset in taken:
            self.records[offset].delivery_count += 1
        if wanted > 0 and not is_throttled:
            taken += self._take_new(covered, producer_batches, wanted, batch_size, mode)
        return self.lock(taken, member, now_ms + limits.lock_duration_ms), gone

    def lock(self, taken: Iterable[int], member: str, deadline_ms: int) -> dict[int, int]:
        """The delivery count of each offset, which the member holds now."""
        for offset in taken:
            record = self.records[offset]
            record.state, record.owner, record.lock_deadline_ms = RecordState.ACQUIRED, member, deadline_ms
        return {offset: self.records[offset].delivery_count for offset in taken}

    def archive_gaps(
        self, reads: Iterable[int], producer_batches: Sequence[tuple[int, int]]
    ) -> NaiveDecision:
        gone = NaiveDecision()
        for read_offset in reads:
            found = [base for base, last in producer_batches if last >= read_offset]
            for offset in self.data(read_offset, min(found[0], self.speo) - 1) if found else ():
                if offset in self.records and self.records[offset].is_available():
                    self.archive_gap(offset, gone)
        if gone.final_offsets:
            self.take_failed_along(gone)
        return gone

    def archive_gap(self, offset: int, gone: NaiveDecision) -> None:
        self.records[offset].archive()
        gone.final_offsets.append(offset)

    def _take_available(
        self,
        covered: set[int],
        producer_batches: Sequence[tuple[int, int]],
        records_max: int,
        batch_size: int,
        mode: AcquireMode,
        limits: ShareLimits,
    ) -> tuple[list[int], bool]:
        taken: list[int] = []
        near_limit = max(2, -(-limits.delivery_count_max // 2))
        for batch in list(self.batches):
            if len(taken) >= records_max:
                break
            available = [
                offset
                for offset in batch
                if offset in covered and offset >= self.spso and self.records[offset].may_be_taken()
            ]
            if not available:
                continue
            if available[0] in self.unread:
                wanted = records_max - len(taken)
                taken += self._take_unread(batch, available, producer_batches, wanted, batch_size, mode)
                continue
            is_throttled = max(self.records[offset].delivery_count for offset in available) >= near_limit
            if is_throttled and taken:
                return taken, True
            budget = records_max - len(taken) if mode is AcquireMode.RECORD_LIMIT else len(available)
            taken += self.one_by_one(available, len(batch), budget, near_limit, limits)
            if is_throttled:
                return taken, True
        return taken, False

    def _take_unread(
        self,
        batch: list[int],
        available: list[int],
        producer_batches: Sequence[tuple[int, int]],
        wanted: int,
        batch_size: int,
        mode: AcquireMode,
    ) -> list[int]:
        end = available[:wanted][-1]
        end = next((last for base, last in producer_batches if base <= end <= last), end)
        read = [offset for offset in available if offset <= end]
        cut = [read] if mode is AcquireMode.RECORD_LIMIT else pieces(read, producer_batches, batch_size)
        gone = [offset for offset in batch if offset < read[0]]
        rest = [offset for offset in batch if offset > read[-1]]
        position = self.batches.index(batch)
        self.batches[position : position + 1] = [one for one in (gone, *cut, rest) if one]
        self.unread.difference_update(read)
        return read[:wanted] if mode is AcquireMode.RECORD_LIMIT else read

    def one_by_one(
        self, available: list[int], batch_size: int, budget: int, near_limit: int, limits: ShareLimits
    ) -> list[int]:
        taken: list[int] = []
        is_limited = False
        for offset in available:
            count = self.records[offset].delivery_count
            is_last = limits.delivery_count_max > 2 and count == limits.delivery_count_max - 1
            if is_last and taken:
                break
            if count >= near_limit and not is_limited:
                is_limited = True
                budget = min(budget, max(1, batch_size >> (count - near_limit + 1)))
            if len(taken) >= budget:
                break
            taken.append(offset)
            if is_last:
                break
        return taken

    def _take_new(
        self,
        covered: set[int],
        producer_batches: Sequence[tuple[int, int]],
        wanted: int,
        batch_size: int,
        mode: AcquireMode,
    ) -> list[int]:
        first = self.speo
        while first in self.control:
            first += 1
        if first not in covered:
            return []
        found = next(base for base, last in producer_batches if last >= first)
        if found > first:
            hole = self.data(self.speo, found - 1)
            self.put_in_flight(hole, RecordState.ARCHIVED, 0)
            first = found
            self.advance()
        there = [offset for offset in sorted(covered) if offset >= first and offset not in self.control]
        end = there[min(wanted, len(there)) - 1]
        for base, last in producer_batches:
            if base <= end <= last:
                end = last
                break
        offsets = self.data(first, end)
        if mode is AcquireMode.RECORD_LIMIT:
            self.put_in_flight(offsets, RecordState.AVAILABLE, 0)
            offsets = offsets[:wanted]
        else:
            for piece in pieces(offsets, producer_batches, batch_size):
                self.put_in_flight(piece, RecordState.AVAILABLE, 0)
        for offset in offsets:
            self.records[offset].delivery_count = 1
        return offsets

    def put_in_flight(self, offsets: list[int], state: RecordState, count: int) -> None:
        self.batches.append(offsets)
        for offset in offsets:
            self.records[offset] = NaiveRecord(state, count)
        self.speo = offsets[-1] + 1

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AckBatch],
        limits: ShareLimits,
        now_ms: int,
        delay_ms: int | None = None,
    ) -> NaiveDecision:
        """`delay_ms` is the delay that the member asks for, for all released records."""
        decision = NaiveDecision()
        try:
            for batch in batches:
                self._acknowledge_batch(decision, member, batch, limits, now_ms, delay_ms)
        except ApiError:
            for offset in decision.targets:
                self.records[offset].target = None
            raise
        if decision.targets:
            self.take_failed_along(decision)
        return decision

    def _acknowledge_batch(
        self,
        decision: NaiveDecision,
        member: str,
        batch: AckBatch,
        limits: ShareLimits,
        now_ms: int,
        delay_ms: int | None,
    ) -> None:
        if batch.last_offset < self.spso:
            return
        if not self.batches and batch.first_offset >= self.spso:
            raise ApiError(ErrorCode.invalid_record_state)
        if batch.last_offset >= self.speo:
            raise ApiError(ErrorCode.invalid_request)
        offsets = list(self.data(max(batch.first_offset, self.spso), batch.last_offset))
        for record in map(self.records.__getitem__, offsets):
            if (
                record.state is not RecordState.ACQUIRED
                or record.owner != member
                or record.target is not None
            ):
                raise ApiError(ErrorCode.invalid_record_state)
        for offset in offsets:
            record = self.records[offset]
            index = offset - batch.first_offset if len(batch.types) > 1 else 0
            if batch.types[index] == 4:
                if not limits.renew_enabled:
                    raise ApiError(ErrorCode.invalid_record_state)
                record.lock_deadline_ms = now_ms + limits.lock_duration_ms
                continue
            record.target = TARGETS[batch.types[index]]
            if record.target is RecordState.AVAILABLE and record.delivery_count >= limits.delivery_count_max:
                record.target = RecordState.ARCHIVED
            if record.target is RecordState.AVAILABLE:
                if delay_ms is None:
                    record.target_due_ms = self.due_again(record.delivery_count, limits, now_ms)
                else:
                    record.target_due_ms = self.due(delay_ms, now_ms)
            decision.targets.append(offset)

    def due_again(self, delivery_count: int, limits: ShareLimits, now_ms: int) -> int | None:
        """The due time after this delivery has failed, without jitter."""
        backoff = limits.retry_backoff
        delay_ms = backoff.base_ms
        for _ in range(delivery_count - 1):
            delay_ms = int(delay_ms * backoff.multiplier)
        return self.due(min(delay_ms, backoff.max_ms), now_ms)

    def due(self, delay_ms: int, now_ms: int) -> int | None:
        """The end of a delay, on the next whole step of the wall clock."""
        if not delay_ms:
            return None
        due_ms = now_ms + delay_ms
        while (due_ms + AHEAD_MS) % DUE_STEP_MS:
            due_ms += 1
        return due_ms

    def end_locks(
        self, offsets: Iterable[int], limits: ShareLimits, now_ms: int, *, is_clean: bool
    ) -> NaiveDecision:
        decision = NaiveDecision()
        for offset in offsets:
            record = self.records[offset]
            if record.delivery_count >= limits.delivery_count_max:
                record.archive()
                decision.final_offsets.append(offset)
            else:
                record.state, record.owner = RecordState.AVAILABLE, None
                if not is_clean:
                    record.due_ms = self.due_again(record.delivery_count, limits, now_ms)
        self.take_failed_along(decision)
        return decision

    def held(self) -> list[int]:
        """Acquired offsets with no change pending, ascending."""
        return [
            offset
            for offset, record in sorted(self.records.items())
            if record.state is RecordState.ACQUIRED and record.target is None and offset >= self.spso
        ]

    def expire(self, limits: ShareLimits, now_ms: int) -> NaiveDecision:
        ended = [offset for offset in self.held() if self.records[offset].lock_deadline_ms <= now_ms]
        for record in self.records.values():
            if record.due_ms is not None and record.due_ms <= now_ms:
                record.due_ms = None
        return self.end_locks(ended, limits, now_ms, is_clean=False)

    def waiting(self) -> dict[int, int]:
        """The due time of each record that waits."""
        return {
            offset: due_ms
            for offset in self.data(self.spso, self.speo - 1)
            if (due_ms := self.records[offset].due_ms) is not None
        }

    def release_member(
        self, member: str, limits: ShareLimits, now_ms: int, *, is_clean: bool
    ) -> NaiveDecision:
        for record in self.records.values():
            if record.owner == member and record.target is not None:
                record.lock_deadline_ms = now_ms
        ended = [offset for offset in self.held() if self.records[offset].owner == member]
        return self.end_locks(ended, limits, now_ms, is_clean=is_clean)

    def administer(
        self, action: RecordAction, first_offset: int, last_offset: int, limits: ShareLimits
    ) -> NaiveDecision:
        """An administrator's change, also of records at the delivery limit."""
        if first_offset < self.spso or last_offset >= self.speo:
            raise ApiError(ErrorCode.invalid_record_state)
        offsets = self.data(first_offset, last_offset)
        if not offsets:
            raise ApiError(ErrorCode.invalid_request)
        records = [self.records[offset] for offset in offsets]
        alterable = [RecordState.ACQUIRED]
        if action is RecordAction.ARCHIVE:
            alterable.append(RecordState.AVAILABLE)
        if any(one.state not in alterable or one.target is not None for one in records):
            raise ApiError(ErrorCode.invalid_record_state)
        if action is RecordAction.RELEASE:
            unlimited = limits._replace(delivery_count_max=1_000)
            return self.end_locks(offsets, unlimited, 0, is_clean=True)
        self._take_out_of_unread(offsets)
        for record in records:
            record.archive()
        decision = NaiveDecision(final_offsets=offsets)
        self.take_failed_along(decision)
        return decision

    def _take_out_of_unread(self, offsets: Sequence[int]) -> None:
        for batch in list(self.batches):
            inside = [offset for offset in batch if offset in offsets and offset in self.unread]
            if inside:
                before = [offset for offset in batch if offset < inside[0]]
                behind = [offset for offset in batch if offset > inside[-1]]
                position = self.batches.index(batch)
                self.batches[position : position + 1] = [one for one in (before, inside, behind) if one]
        self.unread.difference_update(offsets)

    def move_log_start(self, log_start_offset: int) -> None:
        self.spso = log_start_offset
        self.speo = max(self.speo, log_start_offset)
        self.batches = [batch for batch in self.batches if batch[-1] >= log_start_offset]
        self.advance()

    def complete(self, decision: NaiveDecision) -> None:
        for offset in decision.targets:
            record = self.records[offset]
            assert record.target is not None
            if record.target is RecordState.AVAILABLE:
                record.due_ms = record.target_due_ms
            record.state, record.owner, record.target = record.target, None, None
        for offset in decision.final_offsets:
            self.records[offset].is_unrecorded = False
        self.advance()

    def abort(self, decision: NaiveDecision) -> None:
        for offset in decision.targets:
            self.records[offset].target = None
        self.failed += decision.final_offsets

    def take_failed_along(self, decision: NaiveDecision) -> None:
        decision.final_offsets += [offset for offset in self.failed if offset >= self.spso]
        self.failed = []

    def advance(self) -> None:
        for offset in self.data(self.spso, self.speo - 1):
            record = self.records[offset]
            if record.state not in FINAL or record.is_unrecorded:
                break
            self.spso = offset + 1
        self.batches = [batch for batch in self.batches if batch[-1] >= self.spso]

    def projection(self) -> dict[int, tuple[RecordState, int]]:
        """The recorded form of each data offset from SPSO to SPEO."""
        return {
            offset: (RecordState.AVAILABLE, record.delivery_count - 1)
            if record.state is RecordState.ACQUIRED
            else (record.state, record.delivery_count)
            for offset in self.data(self.spso, self.speo - 1)
            for record in (self.records[offset],)
        }

    def restart(self, start_offset: int, end_offset: int, ranges: Sequence[StateRange], now_ms: int) -> None:
        """A crash: of the offsets from start to end (exclusive), only the recorded state remains."""
        self.spso = self.speo = start_offset
        self.records, self.batches, self.failed = {}, [], []
        self.unread = set()
        for one in ranges:
            self._restore(one.base_offset - 1, RecordState.AVAILABLE, 0)
            self._restore(one.last_offset, one.state, one.delivery_count)
            due_ms = one.condition.due_ms - AHEAD_MS if isinstance(one.condition, Due) else now_ms
            if due_ms > now_ms:
                for offset in self.data(max(one.base_offset, start_offset), one.last_offset):
                    self.records[offset].due_ms = due_ms
        self._restore(end_offset - 1, RecordState.AVAILABLE, 0)
        self.advance()

    def _restore(self, last: int, state: RecordState, count: int) -> None:
        offsets = self.data(self.speo, last)
        if not offsets:
            return
        self.put_in_flight(offsets, state, count)
        if state is RecordState.AVAILABLE and count == 0:
            self.unread.update(offsets)


def pieces(
    offsets: list[int], producer_batches: Sequence[tuple[int, int]], batch_size: int
) -> list[list[int]]:
    """Pieces of at least `batch_size` offsets, that begin where producer batches do."""
    bases = {base for base, _ in producer_batches}
    cut: list[list[int]] = [[]]
    is_split = len(offsets) > batch_size
    for offset in offsets:
        if is_split and offset in bases and cut[-1] and len(cut[-1]) >= batch_size:
            cut.append([])
        cut[-1].append(offset)
    return cut
