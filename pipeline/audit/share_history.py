"""The history of one share-partition, replayed control record by control record.

It keeps only the live state (`live_ranges`, `data_offsets`), so its memory doesn't grow with the log. Each
record is checked against the state before it (`checks`). A contradiction is noted, and the record is applied,
as in the broker. After a delta whose predecessor is missing the state is unknown: until the next checkpoint,
outcomes are reported but not checked.

Outcomes are the deltas' ranges, which the caller has as columns; this class counts their records. Outcomes
that only a checkpoint has become `Delivery` rows, and so do those with a dead letter (`due_letters`). An
acknowledgement that waits for a transaction has no cause, so it is no outcome before the transaction ends. A
checkpoint may include changes of its own append; then it has a record's state without a cause. If the start
offset has passed the record, it is only known that the record is done. An administrator's reset may pass open
records, too.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.pipeline.audit.checkpoint_summary import CheckpointSummary, summary_of
from barnabas.pipeline.audit.checks import Check, Violation
from barnabas.pipeline.audit.control_columns import CHECKPOINT, DELTA, NO_MEMBER, ControlColumns
from barnabas.pipeline.audit.data_offsets import DataOffsets
from barnabas.pipeline.audit.due_letters import (
    DUE,
    LETTERS,
    UNKNOWN_LETTER,
    Delivery,
    DueLetters,
    has_letter_steps,
    subtract,
)
from barnabas.pipeline.audit.live_ranges import (
    RANGES_MAX,
    LiveRanges,
    Range,
    live_ranges_of,
    mark_of,
    may_become,
)
from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.protocol.delivery_state import Cause, RecordState, StateRange, is_final
from barnabas.protocol.varint import RecordFormatError

FIRST_CHECKPOINT_EPOCH: Final = 1
LEADER_EPOCHS_MAX: Final = 100_000
VIOLATIONS_MAX: Final = 10_000
"""The number of reported violations of one share-partition; further ones are counted."""

_AVAILABLE, _ARCHIVING = RecordState.AVAILABLE, RecordState.ARCHIVING
_IS_FINAL: Final = tuple(map(is_final, RecordState))
"""By the number of the state."""
_NO_OFFSET: Final = -1
_OFFSET_END: Final = 2**63


class ReplayedPack(NamedTuple):
    """The result for one pack: for each range the number of records whose outcome it is, for each control
    record how often the state was reset before it. A step of a dead letter is the outcome of none.
    """

    record_counts: array[int]
    lives: array[int]


class ShareHistory:
    """Takes the packs of one share-partition in the order of the log, and hands out rows as it goes."""

    def __init__(self, offsets: DataOffsets, *, is_cut: bool, is_in_data: bool = True) -> None:
        """`offsets` are those of the partition, and grow with it. `is_cut` if records before the group's
        first one are gone, because the log begins above 0 or was cleaned. `is_in_data` is False for records
        in the state topic, which has its own offsets and no causes.
        """
        self.offsets = offsets
        self.is_in_data = is_in_data
        self._is_cut = is_cut
        self.violations: list[Violation] = []
        self.checkpoints: list[CheckpointSummary] = []
        self.deliveries: list[Delivery] = []
        self.live: LiveRanges | None = None
        """The state as recorded so far; None while it isn't known."""
        self.first_checkpoint: CheckpointSummary | None = None
        self.newest_checkpoint: ShareCheckpoint | None = None
        self.checkpoint_count = self.delta_count = self.orphan_count = self.life = 0
        self.first_control_offset = self.last_control_offset = _NO_OFFSET
        self.first_decided_at_ms = self.last_decided_at_ms = _NO_OFFSET
        self.lowest_start_offset: int | None = None
        """The lowest offset at which one of its lives has begun; None while no checkpoint has one."""
        self.leader_epochs: set[int] = set()
        """The leader epochs in the records; after `LEADER_EPOCHS_MAX` no more are counted."""
        self.violation_count = 0
        self.deltas_since_checkpoint = 0
        self._letters = DueLetters()
        self._deleted = False
        self._incarnation = self._checkpoint_epoch = 0

    def take(self, columns: ControlColumns) -> ReplayedPack:
        """Replays the control records of one pack."""
        if self.first_control_offset == _NO_OFFSET:
            self._begin(columns)
        if len(self.leader_epochs) < LEADER_EPOCHS_MAX:
            self.leader_epochs.update(columns.leader_epochs)
        counts = self.offsets.count_each(columns.first_offsets, columns.last_offsets)
        has_letters = bool(self._letters) or has_letter_steps(columns.states, columns.causes)
        lives = array("i")
        begin = 0
        for index, (kind, end) in enumerate(zip(columns.kinds, columns.state_ends, strict=True)):
            if kind == DELTA:
                self._take_delta(columns, index, begin, end)
                if has_letters:
                    self._take_letters(columns, index, range(begin, end), counts)
            elif kind == CHECKPOINT:
                self._take_checkpoint(columns, index)
                has_letters = has_letters or bool(self._letters)
            else:
                self._take_malformed(columns.offsets[index], columns.malformed_reason(index))
            lives.append(self.life)
            begin = end
        if columns.kinds[-1] == DELTA:
            self.last_decided_at_ms = columns.decided_at_ms[-1]
        return ReplayedPack(counts, lives)

    def finish(self) -> None:
        """At the end of the log the letters that are still due become rows."""
        self._add(self._letters.drain(DUE))

    @property
    def is_whole(self) -> bool:
        """Whether it is known from the group's first record in this log on."""
        first = self.first_checkpoint
        return (
            first is not None
            and first.control_offset == self.first_control_offset
            and first.checkpoint_epoch == FIRST_CHECKPOINT_EPOCH
        )

    def _begin(self, columns: ControlColumns) -> None:
        self.first_control_offset = columns.offsets[0]
        if columns.kinds[0] == DELTA:
            self.first_decided_at_ms = columns.decided_at_ms[0]
            if not self._is_cut:
                detail = f"it follows {columns.back_offsets[0]}, and no record is there"
                self._violate(Check.CHAIN_BROKEN, columns.offsets[0], detail)

    def _take_delta(self, columns: ControlColumns, index: int, begin: int, end: int) -> None:
        """The short way for most deltas: one range, which is final and begins at the start."""
        offset = columns.offsets[index]
        self.delta_count += 1
        live = self._live_before(columns, index, offset)
        self.last_control_offset = offset
        if live is None:
            return
        firsts, lasts, states = columns.first_offsets, columns.last_offsets, columns.states
        if end == begin + 1 and not live.firsts and _IS_FINAL[states[begin]]:
            last = lasts[begin]
            is_in_log = last < offset or not self.is_in_data
            if live.start_offset == firsts[begin] <= last and is_in_log:
                live.start_offset = last + 1
                live.end_offset = max(live.end_offset, last + 1)
                return
        delivery_counts = columns.delivery_counts
        for slot in range(begin, end):
            self._lay(live, offset, firsts[slot], lasts[slot], states[slot], delivery_counts[slot])
        live.pass_final()
        self._bound(live, offset)

    def _live_before(self, columns: ControlColumns, index: int, offset: int) -> LiveRanges | None:
        """The state that the delta changes; None if it isn't known, or the delta doesn't follow it."""
        live = self.live
        if live is None:
            self._note_orphan(offset)
            return None
        if (
            columns.back_offsets[index] != self.last_control_offset
            or columns.checkpoint_epochs[index] != self._checkpoint_epoch
            or columns.incarnations[index] != self._incarnation
        ):
            self.live = None
            self.orphan_count += 1
            self._violate(Check.CHAIN_BROKEN, offset, self._sequence_error(columns, index))
            return None
        self.deltas_since_checkpoint += 1
        return live

    def _note_orphan(self, offset: int) -> None:
        if self._deleted:
            self._deleted = False
            self._violate(Check.AFTER_TOMBSTONE, offset, "it follows the tombstone of its group")
        self.orphan_count += 1

    def _sequence_error(self, columns: ControlColumns, index: int) -> str:
        incarnation = columns.incarnations[index]
        if incarnation != self._incarnation:
            return f"its incarnation is {incarnation}, its checkpoint's {self._incarnation}"
        epoch = columns.checkpoint_epochs[index]
        if epoch != self._checkpoint_epoch:
            return f"its checkpoint epoch is {epoch}, its checkpoint's {self._checkpoint_epoch}"
        back_offset = columns.back_offsets[index]
        return f"it follows {back_offset}, and the last record is at {self.last_control_offset}"

    def _lay(self, live: LiveRanges, offset: int, first: int, last: int, state: int, count: int) -> None:
        """Lays one recorded range over the state, and notes the contradictions."""
        if last >= self._end_before(offset) or first > last:
            detail = f"a range from {first} to {last} is recorded at {offset}"
            self._violate(Check.BEYOND_THE_LOG, offset, detail, first, last)
        if first < live.start_offset:
            self._check_below_start(live, offset, first, min(last, live.start_offset - 1))
        for was in live.overlay(first, last, mark_of(state, count)):
            self._contradict(offset, was, state, count)

    def _take_letters(
        self, columns: ControlColumns, index: int, slots: range, record_counts: array[int]
    ) -> None:
        """Takes the steps of dead letters from the delta of row `index`, with the ranges `slots`."""
        for slot in slots:
            first, last = columns.first_offsets[slot], columns.last_offsets[slot]
            cause = Cause(columns.causes[slot])
            is_step = columns.states[slot] == _ARCHIVING or cause in LETTERS
            if not is_step and not self._letters.overlaps(first, last):
                continue
            member = columns.members[slot]
            outcome = Delivery(
                first,
                last,
                RecordState(columns.states[slot]),
                columns.delivery_counts[slot],
                cause or None,
                None if member == NO_MEMBER else columns.member_names[member],
                columns.offsets[index],
                columns.decided_at_ms[index],
                columns.incarnations[index],
                self.life,
            )
            rows = self._take_outcome(outcome)
            if rows is not None:
                record_counts[slot] = 0
                self._add(rows)

    def _take_outcome(self, outcome: Delivery) -> list[Delivery] | None:
        """The rows for an outcome with a step of a letter, None for others; checks the letters that end."""
        cause = outcome.cause
        if cause is not None and cause in LETTERS and self.live is not None:
            due = self._letters.between(outcome.first_offset, outcome.last_offset)
            for part in subtract(outcome, due):
                if self.offsets.count(part.first_offset, part.last_offset):
                    detail = f"the cause is {cause.name}, and the record was not Archiving"
                    self._violate(Check.LETTER_NOT_DUE, outcome.control_offset, detail, *part[:2])
        return self._letters.take(outcome)

    def _add(self, rows: Iterable[Delivery]) -> None:
        """Adds rows, without ranges that hold no record."""
        for row in rows:
            record_count = self.offsets.count(row.first_offset, row.last_offset)
            if record_count:
                self.deliveries.append(row._replace(record_count=record_count))

    def _end_before(self, offset: int) -> int:
        """The end of the records that a control record at this offset may be about, exclusive."""
        return offset if self.is_in_data else _OFFSET_END

    def _check_below_start(self, live: LiveRanges, offset: int, first: int, last: int) -> None:
        if self.offsets.count(first, last):
            detail = f"the start offset was {live.start_offset}; all records below it are done"
            self._violate(Check.FINAL_CHANGED, offset, detail, first, last)

    def _contradict(self, offset: int, was: Range, state: int, count: int) -> None:
        if not self.offsets.count(was.first_offset, was.last_offset):
            return
        detail = f"{_described(was.state, was.delivery_count)} became {_described(RecordState(state), count)}"
        self._violate(_broken_check(was, state), offset, detail, was.first_offset, was.last_offset)

    def _bound(self, live: LiveRanges, offset: int) -> None:
        if live.is_full:
            self.give_up(offset)

    def give_up(self, offset: int) -> None:
        """Forgets the state, which takes too much memory, until the next checkpoint."""
        self.live = None
        self._add(self._letters.drain(UNKNOWN_LETTER))
        self._violate(Check.NOT_FOLLOWED, offset, f"there are more than {RANGES_MAX} ranges at a time")

    @property
    def range_count(self) -> int:
        """How many ranges are held."""
        return len(self._letters) + (0 if self.live is None else len(self.live.firsts))

    def _take_malformed(self, offset: int, why: str) -> None:
        self.live = None
        self.last_control_offset = offset
        self._violate(Check.MALFORMED, offset, why)

    def _take_checkpoint(self, columns: ControlColumns, index: int) -> None:
        offset = columns.offsets[index]
        try:
            checkpoint = columns.checkpoint(index)
        except RecordFormatError as error:
            self._take_malformed(offset, str(error))
            return
        self.checkpoint_count += 1
        kind = self._kind_of(checkpoint)
        self._check_epochs(checkpoint, offset)
        states = [state_range[:4] for state_range in checkpoint.states]
        after = live_ranges_of(checkpoint.start_offset, checkpoint.end_offset, states)
        untold_count = self._take_checkpoint_outcomes(checkpoint, offset, kind, after)
        self._note_checkpoint(checkpoint, offset, kind, untold_count)
        self.live = None if checkpoint.deleted else after
        self._deleted = checkpoint.deleted
        self._bound(after, offset)

    def _kind_of(self, checkpoint: ShareCheckpoint) -> str:
        before = self.newest_checkpoint
        if checkpoint.deleted:
            return "tombstone"
        if before is None:
            return "first"
        if before.deleted or checkpoint.group_incarnation != before.group_incarnation:
            return "begun"
        if checkpoint.state_epoch > before.state_epoch or self._is_reset(checkpoint):
            return "reset"
        return "regular"

    def _is_reset(self, checkpoint: ShareCheckpoint) -> bool:
        """Whether it begins again at an earlier offset, which a reset by an administrator does."""
        is_empty = checkpoint.start_offset == checkpoint.end_offset and not checkpoint.states
        return is_empty and self.live is not None and checkpoint.start_offset < self.live.start_offset

    def _check_epochs(self, checkpoint: ShareCheckpoint, offset: int) -> None:
        before = self.newest_checkpoint
        if before is None:
            self._check_first_epoch(checkpoint, offset)
            return
        for check, now, then in (
            (Check.INCARNATION_BACK, checkpoint.group_incarnation, before.group_incarnation),
            (Check.CHECKPOINT_EPOCH_BACK, checkpoint.checkpoint_epoch, before.checkpoint_epoch + 1),
        ):
            if now < then:
                self._violate(check, offset, f"it is {now}, and should be at least {then}")
        if checkpoint.group_incarnation == before.group_incarnation and not before.deleted:
            now, then = checkpoint.state_epoch, before.state_epoch
            if now < then:
                self._violate(Check.STATE_EPOCH_BACK, offset, f"it is {now}, and should be at least {then}")

    def _check_first_epoch(self, checkpoint: ShareCheckpoint, offset: int) -> None:
        epoch = checkpoint.checkpoint_epoch
        if offset == self.first_control_offset and epoch > FIRST_CHECKPOINT_EPOCH and not self._is_cut:
            detail = f"its checkpoint epoch is {epoch}, and no earlier checkpoint is there"
            self._violate(Check.CHAIN_BROKEN, offset, detail)

    def _take_checkpoint_outcomes(
        self, checkpoint: ShareCheckpoint, offset: int, kind: str, after: LiveRanges
    ) -> int:
        """Takes the outcomes that only the checkpoint has; returns the number of their records."""
        if kind in ("begun", "reset", "tombstone"):
            self._add(self._letters.drain(UNKNOWN_LETTER))
        passed_count = 0
        if kind in ("begun", "reset"):
            passed_count = self._pass_open(checkpoint, offset)
            self.life += 1
        changes = [
            change for change in checkpoint.states if change.cause is not Cause.NONE or change.is_pending
        ]
        follows = self.live if kind == "regular" else None
        for change in changes:
            self._take_change(checkpoint, offset, change, follows)
        self._begin_letters(checkpoint, offset)
        if follows is None:
            self._end_letters(checkpoint, offset, after)
            return passed_count
        follows.pass_final()
        return self._compare(checkpoint, offset, follows, after)

    def _pass_open(self, checkpoint: ShareCheckpoint, offset: int) -> int:
        """Open records that a new beginning passes are unknown; returns their number. Letters that were due
        have been handed over.
        """
        live = self.live
        if live is None:
            return 0
        return sum(
            self._deliver(checkpoint, offset, was[:2], None, None, None, None)
            for was in live.between(live.start_offset, checkpoint.start_offset - 1)
            if was.state is _AVAILABLE
        )

    def _take_change(
        self, checkpoint: ShareCheckpoint, offset: int, change: StateRange, live: LiveRanges | None
    ) -> None:
        """An outcome that the checkpoint's own append decided, with its cause; or an acknowledgement that
        waits for a transaction, which is no outcome.
        """
        first, last, state, count, cause, member, _ = change
        if live is not None:
            self._lay(live, offset, first, last, state, count)
        if not change.is_pending:
            self._deliver(checkpoint, offset, (first, last), state, count, cause, member)

    def _begin_letters(self, checkpoint: ShareCheckpoint, offset: int) -> None:
        """Letters that only the checkpoint has begin with it; it names their reasons."""
        for state_range in checkpoint.states:
            if state_range.state is _ARCHIVING and not checkpoint.deleted:
                cause = None if state_range.letter_place is None else state_range.letter_place.reason or None
                self._deliver(
                    checkpoint,
                    offset,
                    state_range[:2],
                    state_range.state,
                    state_range.delivery_count,
                    cause,
                    None,
                )

    def _end_letters(self, checkpoint: ShareCheckpoint, offset: int, after: LiveRanges) -> None:
        """Letters that are not due any more ended in a part of the history that is not known."""
        for due in self._letters.between(0, _OFFSET_END):
            for now in after.between(due.first_offset, due.last_offset):
                if now.state is not _ARCHIVING:
                    self._deliver(checkpoint, offset, now[:2], None, None, None, None)

    def _compare(
        self, checkpoint: ShareCheckpoint, offset: int, before: LiveRanges, after: LiveRanges
    ) -> int:
        """Checks the checkpoint against the state before it; returns the records changed without a cause."""
        if after.start_offset < before.start_offset:
            detail = f"from {before.start_offset} to {after.start_offset}"
            self._violate(
                Check.START_OFFSET_BACK, offset, detail, after.start_offset, before.start_offset - 1
            )
        untold_count = 0
        for was in before.between(before.start_offset, after.start_offset - 1):
            if not is_final(was.state):
                untold_count += self._deliver(checkpoint, offset, was[:2], None, None, None, None)
        low = max(before.start_offset, after.start_offset)
        for was in before.between(low, max(before.end_offset, after.end_offset) - 1):
            for now in after.between(was.first_offset, was.last_offset):
                untold_count += self._compare_range(checkpoint, offset, was, now)
        return untold_count

    def _compare_range(self, checkpoint: ShareCheckpoint, offset: int, was: Range, now: Range) -> int:
        """`now` replaces a part of `was`."""
        if was[2:] == now[2:]:
            return 0
        if may_become(mark_of(*was[2:]), mark_of(*now[2:])):
            return self._deliver(checkpoint, offset, now[:2], now.state, now.delivery_count, None, None)
        if self.offsets.count(now.first_offset, now.last_offset):
            detail = f"{_described(*was[2:])} up to it, {_described(*now[2:])} in it"
            self._violate(Check.CHECKPOINT_DIFFERS, offset, detail, now.first_offset, now.last_offset)
        return 0

    def _deliver(
        self,
        checkpoint: ShareCheckpoint,
        offset: int,
        offsets: tuple[int, int],
        state: RecordState | None,
        count: int | None,
        cause: Cause | None,
        member: str | None,
    ) -> int:
        """Adds the outcome, unless the range holds no record; returns the number of records."""
        decided_at_ms, incarnation = checkpoint.decided_at_ms, checkpoint.group_incarnation
        outcome = Delivery(
            *offsets, state, count, cause, member, offset, decided_at_ms, incarnation, self.life
        )
        rows = self._take_outcome(outcome)
        self._add([outcome] if rows is None else rows)
        return self.offsets.count(*offsets)

    def _note_checkpoint(
        self, checkpoint: ShareCheckpoint, offset: int, kind: str, untold_count: int
    ) -> None:
        taken = summary_of(checkpoint, offset, kind, self.deltas_since_checkpoint, untold_count)
        self.checkpoints.append(taken)
        if not checkpoint.deleted and checkpoint.start_offset >= 0:
            lowest = self.lowest_start_offset
            self.lowest_start_offset = (
                checkpoint.start_offset if lowest is None else min(lowest, checkpoint.start_offset)
            )
        self.first_checkpoint = self.first_checkpoint or taken
        self.newest_checkpoint = checkpoint._replace(states=())
        self.last_decided_at_ms = checkpoint.decided_at_ms
        if self.first_decided_at_ms == _NO_OFFSET:
            self.first_decided_at_ms = checkpoint.decided_at_ms
        self._incarnation, self._checkpoint_epoch = checkpoint.group_incarnation, checkpoint.checkpoint_epoch
        self.last_control_offset = offset
        self.deltas_since_checkpoint = 0

    def _violate(
        self, check: Check, offset: int, detail: str, first: int = _NO_OFFSET, last: int = _NO_OFFSET
    ) -> None:
        self.violation_count += 1
        if self.violation_count <= VIOLATIONS_MAX:
            self.violations.append(Violation(check, offset, first, last, detail))


def _described(state: RecordState, delivery_count: int) -> str:
    return f"{state.name.capitalize()} with delivery count {delivery_count}"


def _broken_check(was: Range, state: int) -> Check:
    """The check that is violated by a range that may not follow."""
    if is_final(was.state):
        return Check.FINAL_CHANGED
    if was.state is _ARCHIVING and state not in (_ARCHIVING, RecordState.ARCHIVED):
        return Check.ARCHIVING_LEFT
    return Check.DELIVERY_COUNT_BACK
