"""A naive share-partition with an order of keys: at each fetch it derives the records that may be delivered
from the states of all records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import RecordState
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from tests.share.partition.naive_partition import (
    FINAL,
    NaiveDecision,
    NaiveDemand,
    NaivePartition,
    NaiveRecord,
    pieces,
)

RELEASE = 2
Batches = Sequence[tuple[int, int]]


@dataclass
class NaiveOrder(NaivePartition):
    """`keys` has the key of each data offset of the log, None for a record without one. Batches in `unknown`
    (base offsets) are delivered alone.
    """

    keys: dict[int, int | None] = field(default_factory=dict[int, "int | None"])
    unknown: set[int] = field(default_factory=set[int])
    run_max: int = 0
    known_until: int = 0
    alone: tuple[int, int] | None = None
    is_chosen: bool = False
    """Whether the records of a fetch were chosen before they were read."""
    taken_back: set[int] = field(default_factory=set[int])
    """Offsets that are being taken back with an acknowledgement that is being recorded."""
    gaps: set[int] = field(default_factory=set[int])
    """Offsets whose record was found to be gone. Their keys are free at once."""

    @property
    def chooses_again(self) -> bool:
        """Whether no record is acquired while others turn out to be gone."""
        return False

    @property
    def has_order(self) -> bool:
        return bool(self.run_max)

    def is_ordered_by(self, limits: ShareLimits) -> bool:
        return limits.key_run_max == self.run_max

    def order_by(self, limits: ShareLimits) -> None:
        self.run_max, self.known_until, self.alone = limits.key_run_max, self.spso, None

    def key(self, offset: int) -> int | None:
        """The key that matters for the order."""
        return self.keys[offset] if self.run_max else None

    def follows(self, limits: ShareLimits) -> bool:
        """Whether records may be acquired, or a change of the order waits for locks and recorded ends."""
        if self.is_ordered_by(limits):
            return True
        for offset in self.data(self.spso, self.speo - 1):
            record = self.records[offset]
            if record.state is RecordState.ACQUIRED or (record.is_unrecorded and offset not in self.gaps):
                return False
        self.order_by(limits)
        if self.has_order:
            self.unread.clear()
        return True

    # Fetching

    def acquire(
        self, covered: set[int], producer_batches: Batches, reads: Iterable[int], demand: NaiveDemand
    ) -> tuple[dict[int, int], NaiveDecision]:
        if not self.has_order:
            return super().acquire(covered, producer_batches, reads, demand)
        gone = self.archive_gaps(reads, producer_batches)
        if not self.is_chosen:
            self.look_further(producer_batches, demand.batch_size, gone)
        if self.chooses_again and gone.final_offsets:
            return {}, gone
        taken = self.take_in_order(covered, demand.records_max, demand.mode, demand.limits)
        for offset in taken:
            self.records[offset].delivery_count += 1
        return self.lock(taken, demand.member, demand.now_ms + demand.limits.lock_duration_ms), gone

    def look_further(self, producer_batches: Batches, batch_size: int, gone: NaiveDecision) -> None:
        new = [one for one in producer_batches if one[1] >= self.known_until]
        for index, (base, _) in enumerate(new):
            if base in self.unknown:
                new = new[: index or int(not self.unfinished())]
                break
        self._put_all_in_flight(new, batch_size)
        for base, last in new:
            for offset in self.data(max(self.known_until, self.spso), base - 1):
                if self.records[offset].is_available():
                    self.archive_gap(offset, gone)
            self.known_until = last + 1
            if base in self.unknown:
                self.alone = (max(base, self.spso), last)
        if gone.final_offsets:
            self.take_failed_along(gone)

    def archive_gap(self, offset: int, gone: NaiveDecision) -> None:
        super().archive_gap(offset, gone)
        self.gaps.add(offset)

    def _put_all_in_flight(self, new: Batches, batch_size: int) -> None:
        new = [one for one in new if one[1] >= self.speo]
        if not new:
            return
        offsets = self.data(max(new[0][0], self.speo), new[-1][1])
        first, *others = pieces(offsets, new, batch_size)
        for piece in (self.data(self.speo, offsets[0] - 1) + first, *others):
            self.put_in_flight(piece, RecordState.AVAILABLE, 0)

    def unfinished(self) -> list[int]:
        """The records below `known_until` that are not final, or not recorded as such."""
        return [
            one
            for one in self.data(self.spso, min(self.known_until, self.speo) - 1)
            if self.records[one].state not in FINAL
            or (self.records[one].is_unrecorded and one not in self.gaps)
        ]

    def may_go(self, covered: set[int]) -> list[int]:
        """The covered records that may be delivered now, ascending."""
        unfinished = self.unfinished()
        if self.alone is not None and self.spso > self.alone[1]:
            self.alone = None
        if self.alone is not None:
            inside = [one for one in unfinished if self.alone[0] <= one <= self.alone[1]]
            is_held = any(self.records[one].state is RecordState.ACQUIRED for one in inside)
            waits = any(
                self.records[one].due_ms is not None or self.records[one].is_unrecorded for one in inside
            )
            if is_held or waits:
                return []
            return [one for one in inside if one in covered and self.records[one].may_be_taken()]
        runs: dict[int, list[int]] = {}
        found: list[int] = []
        for offset in unfinished:
            key = self.key(offset)
            if key is not None:
                runs.setdefault(key, []).append(offset)
            elif self.records[offset].may_be_taken() and offset in covered:
                found.append(offset)
        for run in runs.values():
            if any(self.records[one].state is RecordState.ACQUIRED for one in run):
                continue
            if not all(self.records[one].may_be_taken() for one in run[: self.run_max]):
                continue
            for offset in run[: self.run_max]:
                if offset not in covered:
                    break
                found.append(offset)
        return sorted(found)

    def first_to_go(self, covered: set[int], records_max: int) -> list[int]:
        """Those of the records that may go that come first, in this order."""
        return self.may_go(covered)[:records_max]

    def take_in_order(
        self, covered: set[int], records_max: int, mode: AcquireMode, limits: ShareLimits
    ) -> list[int]:
        """The records that are delivered, ascending."""
        may_go = self.may_go(covered)
        is_whole = self.alone is not None and mode is AcquireMode.BATCH_OPTIMIZED
        if self.alone is None:
            may_go = self.first_to_go(covered, records_max)
        place = {offset: index for index, offset in enumerate(may_go)}
        batches = [one for one in self.batches if not place.keys().isdisjoint(one)]
        batches.sort(key=lambda batch: min(place[one] for one in batch if one in place))
        near_limit = max(2, -(-limits.delivery_count_max // 2))
        taken: list[int] = []
        for batch in batches:
            available = [one for one in batch if one in may_go]
            if len(taken) >= records_max:
                break
            is_throttled = max(self.records[one].delivery_count for one in available) >= near_limit
            if is_throttled and taken:
                break
            budget = len(available) if is_whole else records_max - len(taken)
            taken += self.one_by_one(available, len(batch), budget, near_limit, limits)
            if is_throttled:
                break
        return sorted(taken)

    def advance(self) -> None:
        super().advance()
        self.known_until = max(self.known_until, self.spso)

    def move_log_start(self, log_start_offset: int) -> None:
        self.known_until = max(self.known_until, log_start_offset)
        super().move_log_start(log_start_offset)

    # The ends of locks

    def overtaken(self, released: Iterable[int], limits: ShareLimits) -> set[int]:
        """The held records behind the released ones of their keys."""
        found: set[int] = set()
        if not self.has_order:
            return found
        for offset in released:
            if self.records[offset].delivery_count >= limits.delivery_count_max:
                continue
            for other in self.held():
                if other > offset and self._is_of_one_run(offset, other):
                    found.add(other)
        return found

    def _is_of_one_run(self, offset: int, other: int) -> bool:
        if self.alone is not None and self.alone[0] <= offset <= self.alone[1]:
            return other <= self.alone[1]
        return self.key(offset) is not None and self.key(offset) == self.key(other)

    def end_locks(
        self, offsets: Iterable[int], limits: ShareLimits, now_ms: int, *, is_clean: bool
    ) -> NaiveDecision:
        ended = list(offsets)
        taken_back = self.overtaken(ended, limits)
        for offset in taken_back:
            self._give_back(self.records[offset])
        ended = [one for one in ended if one not in taken_back]
        return super().end_locks(ended, limits, now_ms, is_clean=is_clean)

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AckBatch],
        limits: ShareLimits,
        now_ms: int,
        delay_ms: int | None = None,
    ) -> NaiveDecision:
        released = [one for one in _released(batches) if one in self.records and one >= self.spso]
        taken_back = self.overtaken(released, limits)
        deadlines = {one: self.records[one].lock_deadline_ms for one in taken_back}
        decision = super().acknowledge(member, batches, limits, now_ms, delay_ms)
        for offset in taken_back:
            record = self.records[offset]
            record.target, record.lock_deadline_ms = RecordState.AVAILABLE, deadlines[offset]
            record.target_due_ms = None
            if offset not in decision.targets:
                decision.targets.append(offset)
        self.taken_back |= taken_back
        return decision

    def complete(self, decision: NaiveDecision) -> None:
        for offset in self.taken_back.intersection(decision.targets):
            self.records[offset].delivery_count -= 1
        self.taken_back.difference_update(decision.targets)
        super().complete(decision)
        for offset in self.held():
            if self._is_left_behind(offset):
                self._give_back(self.records[offset])

    def abort(self, decision: NaiveDecision) -> None:
        self.taken_back.difference_update(decision.targets)
        super().abort(decision)
        for offset in decision.targets:
            if offset in self.records and self._is_left_behind(offset):
                self._give_back(self.records[offset])

    def _is_left_behind(self, offset: int) -> bool:
        """Whether a record before this held one, of the same key, is available."""
        return self.records[offset].state is RecordState.ACQUIRED and any(
            self.records[one].is_available() and self._is_of_one_run(one, offset)
            for one in self.unfinished()
            if one < offset
        )

    def _give_back(self, record: NaiveRecord) -> None:
        record.state, record.owner = RecordState.AVAILABLE, None
        record.delivery_count -= 1


def _released(batches: Sequence[AckBatch]) -> list[int]:
    return [
        batch.first_offset + index
        for batch in batches
        for index in range(batch.last_offset - batch.first_offset + 1)
        if batch.types[index if len(batch.types) > 1 else 0] == RELEASE
    ]
