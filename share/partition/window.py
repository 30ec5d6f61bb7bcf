"""The in-flight window: the records between a share-partition's start offset (SPSO) and end offset (SPEO).

KIP-932, "In-flight records". A record comes in flight in a batch, which is first acquired as a whole. Within
a batch, equal neighbours are one run, usually one for the whole batch; acknowledging record by record splits
runs, and they join again as their records become equal.

The batches cover [SPSO, SPEO) without a hole: one that is read behind control records or compacted ones
covers these as well, so the SPSO advances without reading. Runs are cut behind data offsets only, so each
begins with the control offsets before its first record, and has at least one record.

The window keeps its counts and bounds. Which records may go next, and when, is the part of two policies,
`record_order` and `waits`. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import starmap
from typing import Final

from barnabas.protocol.delivery_state import Condition, Due, RecordState, StateRange, is_final
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.waits import AT_ONCE, AvailableRanges, DueTimes, Waiting, Waits
from barnabas.storage.format.control_runs import ControlRuns

AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVING: Final = RecordState.ARCHIVING
ARCHIVED: Final = RecordState.ARCHIVED

Span = tuple[int, int]
"""First and last offset, both inclusive."""


class Run:
    """Neighbouring offsets of one batch, both ends inclusive, that are equal in all fields below.

    `owner`, `lock_deadline_ms` and `acquired_ms` belong to an acquired run, `condition` to the state. A
    renewal moves the deadline, and leaves the time of the acquisition. An acquired run with a condition has
    no owner: its acknowledgement waits for the end of a transaction. `pending` means that a change of the run
    is being recorded: no other change and no acquisition is possible, and the SPSO does not pass it. An
    available run with a condition, which is a `Due`, waits: it cannot be acquired until it is due.
    `keeps_key` means that the run is given up, and a leader that starts again now would deliver it once more.
    """

    __slots__ = (
        "acquired_ms",
        "condition",
        "delivery_count",
        "first_offset",
        "keeps_key",
        "last_offset",
        "lock_deadline_ms",
        "owner",
        "pending",
        "state",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
        owner: str | None = None,
        lock_deadline_ms: int = 0,
        condition: Condition | None = None,
        acquired_ms: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.owner = owner
        self.lock_deadline_ms = lock_deadline_ms
        self.condition = condition
        self.acquired_ms = acquired_ms
        self.pending = False
        self.keeps_key = False

    @property
    def is_live(self) -> bool:
        """Whether its records are not final."""
        return self.state is not ACKNOWLEDGED and self.state is not ARCHIVED

    @property
    def waits(self) -> bool:
        """Whether the run is available, but not due yet."""
        return self.condition is not None and self.state is AVAILABLE

    @property
    def is_delayed(self) -> bool:
        """Whether the run waits for its first delivery."""
        return not self.delivery_count and self.state is AVAILABLE and isinstance(self.condition, Due)

    def hold(self, owner: str, deadline_ms: int, now_ms: int) -> None:
        """A member acquires the run until the deadline."""
        self.state = ACQUIRED
        self.delivery_count += 1
        self.owner = owner
        self.lock_deadline_ms = deadline_ms
        self.acquired_ms = now_ms

    def free(self, state: RecordState, condition: Condition | None) -> None:
        """Takes the run from its owner."""
        self.state = state
        self.condition = condition
        self.owner = None
        self.lock_deadline_ms = 0
        self.acquired_ms = 0

    def is_like(self, other: Run) -> bool:
        """Whether the two may be one run. A pending run is referenced by its decision, and is never
        joined.
        """
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.owner == other.owner
            and self.lock_deadline_ms == other.lock_deadline_ms
            and self.acquired_ms == other.acquired_ms
            and self.condition == other.condition
            and not self.pending
            and not other.pending
        )

    def cut_behind(self, offset: int) -> Run:
        """Ends the run at `offset` and returns the rest as a run of its own."""
        rest = Run(
            offset + 1,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.owner,
            self.lock_deadline_ms,
            self.condition,
            self.acquired_ms,
        )
        self.last_offset = offset
        return rest


class BatchKind(Enum):
    """The ways in which records came in flight."""

    FETCHED = "fetched"
    """Read by a fetch, or delivered before a restart."""
    UNREAD = "unread"
    """A restarted leader has found them in flight, without a recorded delivery.

    Their producer batches are unknown until they are read. They are delivered by producer batches, like new
    records, and the batch shrinks with each fetch. All of it is available, except a part at its beginning
    that may be archived.
    """
    FINISHED = "finished"
    """Neighbouring batches whose records are all final, joined, because a delayed record before them holds
    the start offset."""


FETCHED: Final = BatchKind.FETCHED
UNREAD: Final = BatchKind.UNREAD
FINISHED: Final = BatchKind.FINISHED


class Batch:
    """A range that came in flight as a whole; its bounds stay, its runs cover the part at or above the
    SPSO.
    """

    __slots__ = ("base_offset", "kind", "last_offset", "runs")

    def __init__(
        self, base_offset: int, last_offset: int, runs: list[Run], kind: BatchKind = FETCHED
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.runs = runs
        self.kind = kind

    @property
    def is_finished(self) -> bool:
        """Whether all of its records are final, and recorded as such."""
        return self.kind is FINISHED or not any(run.is_live or run.pending for run in self.runs)

    def run_index(self, offset: int) -> int:
        """The index of the run that holds `offset`; of the first one behind it if none does."""
        if len(self.runs) == 1:
            return 0 if offset <= self.runs[0].last_offset else 1
        return bisect_left(self.runs, offset, key=_last_offset_of)

    def isolate(self, index: int, boundary: int, last_offset: int) -> Run:
        """Makes the part of run `index` from `boundary` to `last_offset` a run of its own, and returns it.

        Both may lie outside of the run. Runs are cut behind data offsets only: see `Window.boundary`.
        """
        run = self.runs[index]
        if boundary > run.first_offset:
            rest = run.cut_behind(boundary - 1)
            self.runs.insert(index + 1, rest)
            run, index = rest, index + 1
        if last_offset < run.last_offset:
            self.runs.insert(index + 1, run.cut_behind(last_offset))
        return run

    def isolate_all(self, parts: Sequence[Span]) -> list[Run]:
        """Makes each part a run of its own, in one pass. The parts are (boundary, last offset), ascending,
        each inside of one run, and cut behind data offsets only.
        """
        runs: list[Run] = []
        isolated: list[Run] = []
        rest = iter(self.runs)
        run = next(rest)
        for boundary, last_offset in parts:
            while run.last_offset < boundary:
                runs.append(run)
                run = next(rest)
            if run.first_offset < boundary:
                runs.append(run)
                run = run.cut_behind(boundary - 1)
            isolated.append(run)
            if last_offset < run.last_offset:
                runs.append(run)
                run = run.cut_behind(last_offset)
        self.runs[:] = (*runs, run, *rest)
        return isolated

    def join(self, first_offset: int, last_offset: int) -> None:
        """Joins equal runs, from the one before `first_offset` to the one behind `last_offset`."""
        runs = self.runs
        if len(runs) == 1:
            return
        first = self.run_index(first_offset)
        last = first if last_offset == first_offset else self.run_index(last_offset)
        low, high = max(first - 1, 0), min(last + 2, len(runs))
        joined = [runs[low]]
        for run in runs[low + 1 : high]:
            if joined[-1].is_like(run):
                joined[-1].last_offset = run.last_offset
            else:
                joined.append(run)
        if len(joined) < high - low:
            runs[low:high] = joined


RunInBatch = tuple[Batch, Run]


class Window:
    """The batches of one share-partition, sorted by base offset, with SPSO and SPEO."""

    __slots__ = (
        "available_from",
        "available_to",
        "awaits_locks",
        "batches",
        "control_runs",
        "deadline_from_ms",
        "due_times",
        "keys",
        "live_count",
        "speo",
        "spso",
        "waits",
    )

    def __init__(self, start_offset: int, control_runs: ControlRuns, due_times: DueTimes) -> None:
        self.spso = start_offset
        """-1 until the start offset has been decided; so is the SPEO."""
        self.speo = start_offset
        self.control_runs = control_runs
        """Those of the log, shared with it."""
        self.batches: list[Batch] = []
        self.live_count = 0
        """The records that are not final."""
        self.available_from: int | None = None
        """Every available record that does not wait lies between these two offsets; None if there is none.
        The bounds avoid a scan, and the next scan makes them exact.
        """
        self.available_to = -1
        self.deadline_from_ms: int | None = None
        """No lock ends before this time; None if there is none. The next scan makes it exact."""
        self.keys: KeyOrder | None = None
        """Is told of each change of a record while records go by keys or priorities; None without these."""
        self.awaits_locks = False
        """Whether a change of the order waits for the end of all locks."""
        self.waits = AT_ONCE
        """The records that are not due yet."""
        self.due_times = due_times

    # Finding records.

    def batch_index(self, offset: int) -> int:
        """The index of the batch that holds `offset`, of the first one if it lies below, of none if above."""
        batches = self.batches
        if len(batches) == 1:
            return 0 if offset <= batches[0].last_offset else 1
        return bisect_left(batches, offset, key=_last_offset_of)

    def run_of(self, offset: int) -> RunInBatch:
        """The run that holds an offset from SPSO to SPEO, and its batch: often the first one of each."""
        batch = self.batches[0]
        if offset > batch.last_offset:
            batch = self.batches[self.batch_index(offset)]
        run = batch.runs[0]
        return batch, run if offset <= run.last_offset else batch.runs[batch.run_index(offset)]

    def runs_between(self, first_offset: int, last_offset: int) -> Iterator[RunInBatch]:
        """The runs that overlap the range, ascending. No run may be split or joined meanwhile."""
        batches = self.batches
        for position in range(self.batch_index(first_offset), len(batches)):
            batch = batches[position]
            if batch.base_offset > last_offset:
                return
            for index in range(batch.run_index(first_offset), len(batch.runs)):
                run = batch.runs[index]
                if run.first_offset > last_offset:
                    return
                yield batch, run

    def all_runs(self) -> Iterator[RunInBatch]:
        """Every run, ascending. No run may be split or joined meanwhile."""
        for batch in self.batches:
            for run in batch.runs:
                yield batch, run

    def live_ranges(self, end_offset: int) -> Iterator[Span]:
        """The records below an offset that are not final, as ascending ranges, both ends inclusive."""
        for _, run in self.runs_between(self.spso, end_offset - 1):
            if run.is_live:
                yield max(run.first_offset, self.spso), min(run.last_offset, end_offset - 1)

    def boundary(self, data_offset: int) -> int:
        """The start of a run that begins with the record at `data_offset`: behind the record before it."""
        return self.control_runs.previous_data_offset(data_offset - 1) + 1

    def parts(
        self, first_offset: int, last_offset: int, is_wanted: Callable[[Run], bool]
    ) -> list[RunInBatch]:
        """The records of the range (data offsets) in wanted runs, as runs of their own, ascending."""
        found = [
            (batch, run) for batch, run in self.runs_between(first_offset, last_offset) if is_wanted(run)
        ]
        parts: list[RunInBatch] = []
        for batch, run in found:
            first = max(run.first_offset, first_offset)
            boundary = self.boundary(first) if first > run.first_offset else first
            parts.append((batch, batch.isolate(batch.run_index(first), boundary, last_offset)))
        return parts

    def isolated(self, ranges: Iterable[Span]) -> list[RunInBatch]:
        """The ranges, each inside of one run, as runs of their own."""
        runs: list[RunInBatch] = []
        for first_offset, last_offset in ranges:
            batch = self.batches[self.batch_index(first_offset)]
            boundary = self.boundary(first_offset)
            runs.append((batch, batch.isolate(batch.run_index(first_offset), boundary, last_offset)))
        return runs

    # Counting.

    def record_count(self) -> int:
        """Records from SPSO to SPEO, in any state."""
        return self.control_runs.data_count(self.spso, self.speo - 1)

    def count(self, run: Run) -> int:
        """The records of a run, the part that the SPSO has passed excepted."""
        return self.control_runs.data_count(max(run.first_offset, self.spso), run.last_offset)

    def size(self) -> int:
        """The records that count for `share.partition.max.record.locks`: all from SPSO to SPEO. Delayed
        records do not count, and neither do the final ones behind them, because a delayed record may hold the
        SPSO for days.
        """
        if self.waits.has_delayed:
            return self.live_count - self.waits.delayed_count
        return self.control_runs.data_count(self.spso, self.speo - 1)

    def live_count_below(self, offset: int) -> int:
        """Records below an offset that are not final."""
        return sum(starmap(self.control_runs.data_count, self.live_ranges(offset)))

    # Changing records.

    def append(self, batch: Batch) -> None:
        """Adds a batch at the SPEO."""
        assert batch.base_offset == self.speo, (batch.base_offset, self.speo)
        self.batches.append(batch)
        self.speo = batch.last_offset + 1
        data_count = self.control_runs.data_count
        for run in batch.runs:
            if run.state is not ACKNOWLEDGED and run.state is not ARCHIVED:
                self.live_count += data_count(run.first_offset, run.last_offset)

    def free(
        self, run: Run, state: RecordState, condition: Condition | None = None, *, keeps_key: bool = False
    ) -> None:
        """Takes a live run from its owner. The part that the SPSO has passed meanwhile is already excluded
        from the count.

        With `keeps_key` an order of keys waits for `KeyOrder.recorded` before it goes on: a leader that
        starts again before that would deliver the record behind others of its key.
        """
        before = run.state
        if self.waits.delayed_count and run.is_delayed:
            self.waits.delayed_count -= self.control_runs.data_count(run.first_offset, run.last_offset)
        run.free(state, condition)
        if self.keys is not None and before is not ARCHIVING:
            self._tell_keys(self.keys, run, was_held=before is ACQUIRED, keeps_key=keeps_key)
        if state is AVAILABLE:
            if isinstance(condition, Due):
                self.note_waiting(run, condition)
            else:
                self.note_available(run.first_offset, run.last_offset)
        elif state is not ARCHIVING:
            self.live_count -= self.control_runs.data_count(max(run.first_offset, self.spso), run.last_offset)

    def take_back(self, ranges: Iterable[Span]) -> None:
        """These held records, each range inside of one run, become available immediately, without their last
        delivery.
        """
        for _, run in self.isolated(ranges):
            self.give_back(run)

    def give_back(self, run: Run) -> None:
        """A held run becomes available, without its last delivery. Nothing has to be recorded for that: an
        acquired record is recorded as available with one delivery less.
        """
        run.delivery_count -= 1
        self.free(run, AVAILABLE)

    def note_available(self, first_offset: int, last_offset: int) -> None:
        """Records of this range have become available."""
        if self.waits.has_delayed:
            self.waits.available.add(first_offset, last_offset)
        if self.available_from is None:
            self.available_from, self.available_to = first_offset, last_offset
        else:
            self.available_from = min(self.available_from, first_offset)
            self.available_to = max(self.available_to, last_offset)

    def note_deadline(self, deadline_ms: int) -> None:
        """A lock ends at this time."""
        if self.deadline_from_ms is None or deadline_ms < self.deadline_from_ms:
            self.deadline_from_ms = deadline_ms

    def advance(self) -> bool:
        """Moves the SPSO over the final records that are recorded as such; returns whether it has moved."""
        before = self.spso
        done = 0
        for batch in self.batches:
            passed = 0
            for run in batch.runs:
                if run.pending or (run.state is not ACKNOWLEDGED and run.state is not ARCHIVED):
                    break
                passed += 1
                self.spso = run.last_offset + 1
            if passed < len(batch.runs):
                del batch.runs[:passed]
                break
            done += 1
        del self.batches[:done]
        if self.keys is not None:
            self.keys.known_until = max(self.keys.known_until, self.spso)
        if self.waits.has_delayed and not self.waits.delayed_count:
            self.waits.note_none_delayed(has_gaps=self.live_count != self.record_count())
        return self.spso != before

    def drop_below(self, offset: int) -> None:
        """Moves the SPSO to `offset` past records in any state, which are gone from the log."""
        assert offset > self.spso, (offset, self.spso)
        if self.keys is not None:
            for _, run in self.runs_between(self.spso, offset - 1):
                last_offset = min(run.last_offset, offset - 1)
                self.keys.finish(run.first_offset, last_offset, was_held=run.state is ACQUIRED)
            self.keys.known_until = max(self.keys.known_until, offset)
        self.spso = offset
        self.speo = max(self.speo, offset)
        del self.batches[: self.batch_index(offset)]
        if self.batches:
            batch = self.batches[0]
            del batch.runs[: batch.run_index(offset)]
            batch.runs[0].first_offset = max(batch.runs[0].first_offset, offset)
        # The control runs below are forgotten, so the number of records there is unknown.
        self.live_count = sum([self.count(run) for _, run in self.all_runs() if run.is_live])
        if self.waits.delayed_count:
            self.waits.delayed_count = sum([self.count(run) for _, run in self.all_runs() if run.is_delayed])

    def _tell_keys(self, keys: KeyOrder, run: Run, *, was_held: bool, keeps_key: bool) -> None:
        """The order goes on behind a record that will not be delivered again, even while its dead letter is
        not written.
        """
        if run.state is AVAILABLE:
            put_back = keys.release if run.condition is None else keys.hold_back
            put_back(run.first_offset, run.last_offset)
        elif keeps_key:
            keys.keep(run.first_offset, run.last_offset)
        else:
            keys.finish(run.first_offset, run.last_offset, was_held=was_held)

    # Records that wait until they are due.

    def note_waiting(self, run: Run, due: Due) -> None:
        """The run waits until then."""
        if self.waits is AT_ONCE:
            self.waits = Waits()
        self.waits.add(Waiting(due.due_ms, run.first_offset, run.last_offset))
        if self.waits.is_swollen:
            self._build_waits()

    def note_delayed(self, run: Run, due: Due) -> None:
        """The run, which was never delivered, waits until then."""
        self.note_waiting(run, due)
        waits = self.waits
        if not waits.has_delayed and self.available_from is not None:
            waits.available = AvailableRanges([(self.available_from, self.available_to)])
        waits.has_delayed = True
        waits.delayed_count += self.control_runs.data_count(run.first_offset, run.last_offset)

    def end_waits(self, wall_ms: int) -> bool:
        """Makes the records available that are due at this wall-clock time. Returns whether there are any."""
        ended: list[RunInBatch] = []
        for due_ms, first_offset, last_offset in self.waits.take_due(wall_ms):
            for batch, run in self.runs_between(first_offset, last_offset):
                if run.state is AVAILABLE and run.condition == (due_ms,):
                    self.free(run, AVAILABLE)
                    ended.append((batch, run))
        for batch, run in ended:
            batch.join(run.first_offset, run.last_offset)
        return bool(ended)

    def follow_wall_clock(self, ahead_ms: int) -> None:
        """If the wall clock was set, moves the due times of retries with it, so that these records wait as
        long as they would have. Delayed records follow the new clock, because their due times follow from
        timestamps. `ahead_ms` is the wall-clock time minus the monotonic time.

        The recorded due times stay; times that are recorded from now on are of the new clock.
        """
        step_ms = self.due_times.adopt(ahead_ms)
        if not step_ms or self.waits.first_due_ms is None:
            return
        for _, run in self.all_runs():
            if run.state is AVAILABLE and isinstance(run.condition, Due) and not run.is_delayed:
                run.condition = Due(run.condition.due_ms + step_ms)
        self._build_waits()

    def waiting_count(self) -> int:
        """The records that wait until they are due."""
        if self.waits.first_due_ms is None:
            return 0
        return sum(self.count(run) for _, run in self.all_runs() if run.waits)

    def _build_waits(self) -> None:
        """Without stale entries."""
        self.waits.build(
            Waiting(run.condition.due_ms, run.first_offset, run.last_offset)
            for _, run in self.all_runs()
            if run.state is AVAILABLE and isinstance(run.condition, Due)
        )

    def join_finished(self, changes: Iterable[StateRange]) -> None:
        """Joins the batches that have become final by these changes with finished neighbours.

        A delayed record may hold the SPSO for days, while any number of records behind it are delivered and
        acknowledged. So these take memory by the number of delayed records, and not by their own.
        """
        for change in changes:
            if is_final(change.state):
                offset = max(change.base_offset, self.spso)
                while offset <= change.last_offset and offset < self.speo:
                    offset = self._join_finished_at(offset)

    def _join_finished_at(self, offset: int) -> int:
        """Joins the batch that holds the offset with its neighbours, if it is finished. Returns the offset
        behind it.
        """
        batches = self.batches
        index = self.batch_index(offset)
        batch = batches[index]
        if not batch.is_finished:
            return batch.last_offset + 1
        first, end = index, index + 1
        if index and batches[index - 1].kind is FINISHED:
            first = index - 1
        if end < len(batches) and batches[end].kind is FINISHED:
            end += 1
        whole = batches[first:end]
        joined = Batch(whole[0].base_offset, whole[-1].last_offset, whole[0].runs, FINISHED)
        for following in whole[1:]:
            seam = following.runs[0].first_offset
            joined.runs += following.runs
            joined.join(seam, seam)
        batches[first:end] = [joined]
        return joined.last_offset + 1

    # Records that a restarted leader has found in flight.

    def replace_unread(self, batch: Batch, read: list[Batch]) -> None:
        """Replaces the part of an unread batch that was read: some of the available records, from the first
        one on.

        The batch keeps the archived records in front of them; the records behind them stay unread.
        """
        base_offset, last_offset = read[0].base_offset, read[-1].last_offset
        index = batch.run_index(base_offset)
        put = [*read]
        if last_offset < batch.last_offset:
            rest = Run(last_offset + 1, batch.last_offset, AVAILABLE, 0)
            put.append(Batch(last_offset + 1, batch.last_offset, [rest], UNREAD))
        position = self.batch_index(base_offset)
        assert self.batches[position] is batch, (batch.base_offset, base_offset)
        if index:  # A decision may refer to the archived part.
            del batch.runs[index:]
            batch.last_offset = base_offset - 1
            put.insert(0, batch)
        self.batches[position : position + 1] = put

    def forget_unread(self) -> None:
        """Unread batches become like all others: an order of keys reads them itself."""
        for batch in self.batches:
            if batch.kind is UNREAD:
                batch.kind = FETCHED

    def take_out_of_unread(self, first_offset: int, last_offset: int) -> None:
        """The records of the range are not delivered by producer batches any more: their states may differ.

        An unread batch that holds some becomes several: the records before and behind the range stay unread.
        """
        first_offset = self.boundary(first_offset)
        for batch, run in list(self.runs_between(first_offset, last_offset)):
            if batch.kind is UNREAD and run.state is AVAILABLE:
                position = self.batch_index(batch.last_offset)
                self.batches[position : position + 1] = _cut_unread(batch, first_offset, last_offset)


def _cut_unread(batch: Batch, first_offset: int, last_offset: int) -> list[Batch]:
    """The batch in parts, so that the records of the range are in a batch of their own."""
    run = batch.runs.pop()
    first_offset, last_offset = max(first_offset, run.first_offset), min(last_offset, run.last_offset)
    parts: list[Batch] = []
    if run.first_offset < first_offset:
        batch.runs.append(run)
        run = run.cut_behind(first_offset - 1)
    if batch.runs:  # A decision may refer to the archived part.
        batch.last_offset = first_offset - 1
        parts.append(batch)
    parts.append(Batch(first_offset, last_offset, [run]))
    if last_offset < run.last_offset:
        rest = run.cut_behind(last_offset)
        parts.append(Batch(rest.first_offset, rest.last_offset, [rest], UNREAD))
    return parts


def _last_offset_of(part: Batch | Run) -> int:
    return part.last_offset
