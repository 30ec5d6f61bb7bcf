"""The records in flight between a share-partition's start offset (SPSO) and end offset (SPEO).

KIP-932, "In-flight records". The batches cover [SPSO, SPEO) without a hole: one that is read behind control
records or compacted ones covers these as well, so the SPSO advances without reading.

Runs are cut behind data offsets only, so each begins with the control offsets before its first record and has
at least one record. The modules beside this one decide the changes of a run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap

from barnabas.protocol.delivery_state import Condition, Due, RecordState, StateRange
from barnabas.share.partition.available_ranges import AvailableRanges
from barnabas.share.partition.due_times import DueTimes
from barnabas.share.partition.in_flight_batch import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
)
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.wait_queue import Waiting, WaitQueue
from barnabas.storage.format.control_runs import ControlRuns


class InFlight:
    """The batches of one share-partition, sorted by base offset, with SPSO and SPEO.

    `control_runs` are those of the log, shared with it. `spso` and `speo` are -1 until the start offset has
    been decided. `live_count` is the number of records that are not final. Every available record that does
    not wait lies from `available_from` to `available_to`, and no lock ends before `deadline_from_ms`; None
    if there is none. They avoid a scan, and the next scan makes them exact. `wait_queue` has the records that
    wait. `key_order` is there while the group has `share.order=key`, and `awaits_locks` while a change of
    that setting waits for the end of all locks. `delayed_count` is the number of records that wait for their
    first delivery, and `has_delayed` whether there were any since the window was last without a gap. As long
    as that is so, `available_ranges` tells more exactly where available records may lie. `clock_looked_ms` is
    when the wall clock was last looked at (monotonic).
    """

    __slots__ = (
        "available_from",
        "available_ranges",
        "available_to",
        "awaits_locks",
        "batches",
        "clock_looked_ms",
        "control_runs",
        "deadline_from_ms",
        "delayed_count",
        "due_times",
        "has_delayed",
        "key_order",
        "live_count",
        "speo",
        "spso",
        "wait_queue",
    )

    def __init__(
        self, start_offset: int, control_runs: ControlRuns, due_times: DueTimes | None = None
    ) -> None:
        self.due_times = due_times or DueTimes()
        self.spso = start_offset
        self.speo = start_offset
        self.key_order: KeyOrder | None = None
        self.awaits_locks = False
        self.control_runs = control_runs
        self.batches: list[InFlightBatch] = []
        self.available_from: int | None = None
        self.available_to = -1
        self.deadline_from_ms: int | None = None
        self.wait_queue = WaitQueue()
        self.clock_looked_ms = 0
        self.live_count = 0
        self.delayed_count = 0
        self.has_delayed = False
        self.available_ranges = AvailableRanges()

    def append(self, batch: InFlightBatch) -> None:
        """Adds a batch at the SPEO."""
        assert batch.base_offset == self.speo, (batch.base_offset, self.speo)
        self.batches.append(batch)
        self.speo = batch.last_offset + 1
        self.live_count += self._live_count_of(batch)

    def free(
        self,
        run: InFlightRun,
        state: RecordState,
        condition: Condition | None = None,
        *,
        keeps_key: bool = False,
    ) -> None:
        """Takes a live run from its owner. The part that the SPSO has passed meanwhile is already excluded
        from the count.

        The order of keys goes on behind a record that will not be delivered again, even while its dead letter
        is not written. With `keeps_key` it waits for `note_recorded`: a leader that starts again before that
        would deliver the record behind others of its key.
        """
        was_held, was_archiving = run.state is ACQUIRED, run.state is ARCHIVING
        if self.delayed_count and run.is_delayed:
            self.delayed_count -= self.control_runs.data_count(run.first_offset, run.last_offset)
        run.free(state, condition)
        order = self.key_order
        if order is not None and not was_archiving:
            if state is AVAILABLE:
                put_back = order.release if condition is None else order.hold_back
                put_back(run.first_offset, run.last_offset)
            elif keeps_key:
                order.keep(run.first_offset, run.last_offset)
            else:
                order.finish(run.first_offset, run.last_offset, was_held=was_held)
        if state is AVAILABLE:
            if isinstance(condition, Due):
                self.note_waiting(run, condition)
            else:
                self.note_available(run.first_offset, run.last_offset)
        if not _is_live(run):
            first_offset = max(run.first_offset, self.spso)
            self.live_count -= self.control_runs.data_count(first_offset, run.last_offset)

    def note_recorded(self, changes: Iterable[StateRange]) -> None:
        """Changes that were in force before are recorded now."""
        if self.key_order is not None:
            for change in changes:
                if change.state is not AVAILABLE:
                    self.key_order.finish(change.base_offset, change.last_offset, was_held=False)

    def batch_index(self, offset: int) -> int:
        """The index of the batch that holds `offset`, of the first one if it lies below, of none if above."""
        batches = self.batches
        if len(batches) == 1:
            return 0 if offset <= batches[0].last_offset else 1
        return bisect_left(batches, offset, key=_batch_last_offset)

    def runs_between(
        self, first_offset: int, last_offset: int
    ) -> Iterator[tuple[InFlightBatch, InFlightRun]]:
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

    def parts(
        self, first_offset: int, last_offset: int, is_wanted: Callable[[InFlightRun], bool]
    ) -> list[tuple[InFlightBatch, InFlightRun]]:
        """The records of the range (data offsets) in wanted runs, as runs of their own, ascending."""
        found = [
            (batch, run) for batch, run in self.runs_between(first_offset, last_offset) if is_wanted(run)
        ]
        parts: list[tuple[InFlightBatch, InFlightRun]] = []
        for batch, run in found:
            first = max(run.first_offset, first_offset)
            boundary = self.boundary(first) if first > run.first_offset else first
            parts.append((batch, batch.isolate(batch.run_index(first), boundary, last_offset)))
        return parts

    def run_of(self, offset: int) -> tuple[InFlightBatch, InFlightRun]:
        """The run that holds an offset from SPSO to SPEO, and its batch."""
        batch = self.batches[self.batch_index(offset)]
        return batch, batch.runs[batch.run_index(offset)]

    def boundary(self, data_offset: int) -> int:
        """The start of a run that begins with the record at `data_offset`: behind the record before it."""
        control_runs = self.control_runs
        return control_runs.previous_data_offset(data_offset - 1) + 1 if len(control_runs) else data_offset

    def note_available(self, first_offset: int, last_offset: int) -> None:
        """Records of this range have become available."""
        if self.has_delayed:
            self.available_ranges.add(first_offset, last_offset)
        if self.available_from is None:
            self.available_from, self.available_to = first_offset, last_offset
            return
        self.available_from = min(self.available_from, first_offset)
        self.available_to = max(self.available_to, last_offset)

    def note_deadline(self, deadline_ms: int) -> None:
        if self.deadline_from_ms is None or deadline_ms < self.deadline_from_ms:
            self.deadline_from_ms = deadline_ms

    def note_waiting(self, run: InFlightRun, due: Due) -> None:
        """The run waits until then."""
        self.wait_queue.add(Waiting(due.due_ms, run.first_offset, run.last_offset))
        if self.wait_queue.is_swollen:
            self.build_wait_queue()

    def build_wait_queue(self) -> None:
        """Without stale entries."""
        self.wait_queue.build(
            Waiting(run.condition.due_ms, run.first_offset, run.last_offset)
            for batch in self.batches
            for run in batch.runs
            if run.state is AVAILABLE and isinstance(run.condition, Due)
        )

    def note_delayed(self, run: InFlightRun, due: Due) -> None:
        """The run, which was never delivered, waits until then."""
        if not self.has_delayed and self.available_from is not None:
            self.available_ranges = AvailableRanges([(self.available_from, self.available_to)])
        self.has_delayed = True
        self.delayed_count += self.control_runs.data_count(run.first_offset, run.last_offset)
        self.note_waiting(run, due)

    def advance(self) -> bool:
        """Moves the SPSO over the final records that are recorded as such; returns whether it has moved."""
        before = self.spso
        done = 0
        for batch in self.batches:
            passed = _final_prefix(batch.runs)
            if passed:
                self.spso = batch.runs[passed - 1].last_offset + 1
            if passed < len(batch.runs):
                del batch.runs[:passed]
                break
            done += 1
        del self.batches[:done]
        if self.key_order is not None:
            self.key_order.known_until = max(self.key_order.known_until, self.spso)
        if self.has_delayed and not self.delayed_count:
            self.has_delayed = self.live_count != self.record_count()
            if not self.has_delayed:
                self.available_ranges = AvailableRanges()
        return self.spso != before

    def drop_below(self, offset: int) -> None:
        """Moves the SPSO to `offset` past records in any state, which are gone from the log."""
        assert offset > self.spso, (offset, self.spso)
        if self.key_order is not None:
            self._forget_keys_below(self.key_order, offset)
        self.spso = offset
        self.speo = max(self.speo, offset)
        del self.batches[: self.batch_index(offset)]
        if self.batches:
            batch = self.batches[0]
            del batch.runs[: batch.run_index(offset)]
            batch.runs[0].first_offset = max(batch.runs[0].first_offset, offset)
        # The control runs below are forgotten, so the number of records there is unknown.
        self.live_count = sum(map(self._live_count_of, self.batches))
        if self.delayed_count:
            self.delayed_count = sum(map(self._delayed_count_of, self.batches))

    def take_news(self) -> bool:
        """Whether records may have become available since the last call without a change of their own: their
        key is free, or the locks have ended that a change of the order waits for.
        """
        order = self.key_order
        if order is None or not order.has_news:
            return self.awaits_locks
        order.has_news = False
        return True

    def _forget_keys_below(self, order: KeyOrder, offset: int) -> None:
        for _, run in self.runs_between(self.spso, offset - 1):
            last_offset = min(run.last_offset, offset - 1)
            order.finish(run.first_offset, last_offset, was_held=run.state is ACQUIRED)
        order.known_until = max(order.known_until, offset)

    def record_count(self) -> int:
        """Data offsets from SPSO to SPEO, in any state."""
        return self.control_runs.data_count(self.spso, self.speo - 1)

    def window_count(self) -> int:
        """The size of the in-flight window: all records from SPSO to SPEO. Delayed records do not count, and
        neither do the final ones behind them, because a delayed record may hold the SPSO for days.
        """
        if self.has_delayed:
            return self.live_count - self.delayed_count
        return self.control_runs.data_count(self.spso, self.speo - 1)

    def live_count_below(self, offset: int) -> int:
        """Records below an offset that are not final."""
        return sum(starmap(self.control_runs.data_count, self.live_ranges(offset)))

    def live_ranges(self, end_offset: int) -> Iterator[tuple[int, int]]:
        """The records below an offset that are not final, as ascending ranges, both ends inclusive."""
        for _, run in self.runs_between(self.spso, end_offset - 1):
            if _is_live(run):
                yield max(run.first_offset, self.spso), min(run.last_offset, end_offset - 1)

    def _delayed_count_of(self, batch: InFlightBatch) -> int:
        delayed = [run for run in batch.runs if run.is_delayed]
        return sum(self.control_runs.data_count(run.first_offset, run.last_offset) for run in delayed)

    def _live_count_of(self, batch: InFlightBatch) -> int:
        count = 0
        for run in batch.runs:
            if _is_live(run):
                count += self.control_runs.data_count(run.first_offset, run.last_offset)
        return count


def _final_prefix(runs: list[InFlightRun]) -> int:
    for index, run in enumerate(runs):
        if _is_live(run) or run.pending:
            return index
    return len(runs)


def _is_live(run: InFlightRun) -> bool:
    return run.state is not ACKNOWLEDGED and run.state is not ARCHIVED


def _batch_last_offset(batch: InFlightBatch) -> int:
    return batch.last_offset
