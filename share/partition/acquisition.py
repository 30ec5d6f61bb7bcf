"""The acquisition of records by one fetch: the plan of its reads, the choice of records, and their locks.

KIP-932 "In-flight records", "Batching" and "Delivery count and poison messages", KIP-1206 for the record
limit. First a plan names the reads, then the batches that were read show which records exist. Reading the log
is the caller's part. This module has what all orders of records have in common; `record_order` has the
orders.

New records come in flight as batches, which end where producer batches do; redelivered records stay in their
batches. As in Apache Kafka 4.3, a record that has failed often is delivered together with fewer and fewer
others, and alone on its last delivery, so that it cannot affect good records. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.protocol.delivery_state import Cause, RecordState
from barnabas.protocol.tuples import maker
from barnabas.share.partition.arrival import TimedPart, admit, piece_ends
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import (
    AcquireMode,
    ShareLimits,
    is_delivered_alone,
    throttle_count_min,
    throttled_records_max,
)
from barnabas.share.partition.window import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    UNREAD,
    Batch,
    Run,
    Span,
    Window,
)
from barnabas.storage.format.control_runs import ControlRuns

if TYPE_CHECKING:
    from barnabas.share.partition.key_order import BatchKeys

READS_MAX: Final = 16
"""Reads in a plan. Available records that lie too scattered for it wait for the next fetch. With priorities
there is a read for each part instead, so that the most urgent records do not wait."""

READ_GAP_MAX: Final = 32
"""Records skipped within one read, instead of another read of the log."""

UNBOUNDED_OFFSET: Final = (1 << 63) - 1
EVERYTHING: Sequence[Span] = ((0, UNBOUNDED_OFFSET),)
UNLIMITED_COUNT: Final = 1 << 63
"""More records than any batch has."""

_base_offset_of = attrgetter("base_offset")
_last_offset_of = attrgetter("last_offset")


class ProducerBatch(Protocol):
    """A producer batch that was read."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def has_data(self) -> bool:
        """Whether it holds anything for a client to deliver."""
        ...


class Found:
    """The producer batches that the reads of a plan have found."""

    __slots__ = ("aborted", "batches", "has_empty", "keys", "timed", "unreadable")

    def __init__(self, batches: Sequence[ProducerBatch], *, has_empty: bool) -> None:
        self.batches = batches
        """Ascending, each once, without share control batches."""
        self.has_empty = has_empty
        """Whether some of them may have no data."""
        self.aborted: Sequence[Span] = ()
        """The bounds of those whose transaction was aborted."""
        self.unreadable: Sequence[Span] = ()
        """The bounds of those with malformed records."""
        self.keys: Sequence[BatchKeys] = ()
        """If there is an order of keys: those of the batches that end at or behind `keys_until`."""
        self.timed: Sequence[TimedPart] | None = None
        """The records that may not be delivered now; None in a group without a timing."""


class Demand:
    """The records that one fetch may still acquire, and the conditions. Its caller lowers the amounts as it
    goes from partition to partition.
    """

    __slots__ = (
        "acquire_mode",
        "batch_size",
        "bytes_max",
        "limits",
        "member_id",
        "now_ms",
        "read_committed",
        "records_max",
    )

    def __init__(
        self,
        member_id: str,
        records_max: int,
        bytes_max: int,
        batch_size: int,
        acquire_mode: AcquireMode,
        limits: ShareLimits,
        now_ms: int,
        *,
        read_committed: bool = False,
    ) -> None:
        self.member_id = member_id
        self.records_max = records_max
        self.bytes_max = bytes_max
        self.batch_size = batch_size
        self.acquire_mode = acquire_mode
        self.limits = limits
        """The group's, with the duration of the member's own locks."""
        self.now_ms = now_ms
        """Monotonic: the locks begin now."""
        self.read_committed = read_committed
        """Whether records of aborted transactions are archived instead of delivered."""


class PlannedRead(NamedTuple):
    """One read: the producer batches that overlap `record_count` data offsets from `first_offset` on, or the
    next existing one; more batches do no harm. It is meant to end at `last_offset`, inclusive.
    """

    first_offset: int
    record_count: int
    last_offset: int


_new_read = maker(PlannedRead)


class AcquirePlan:
    """The reads before an acquisition; none if no record can be acquired now.

    They are done in order and may end after any of them; a batch that two reads share is read once. They have
    `available_count` available records, and `new_count` new ones from `new_from` on.
    """

    __slots__ = ("available_count", "chosen", "new_count", "new_from", "reads")

    def __init__(self) -> None:
        self.reads: list[PlannedRead] = []
        self.chosen: Sequence[Span] = ()
        """With priorities, the ranges of the records to acquire. They are the most urgent ones, so a fetch
        with too few bytes for all of them must not simply take the first ones."""
        self.available_count = 0
        self.new_count = 0
        self.new_from = 0

    def chosen_count(self, last_offset: int = UNBOUNDED_OFFSET) -> int:
        """The number of chosen records up to an offset, inclusive."""
        return sum(max(min(last, last_offset) - first + 1, 0) for first, last in self.chosen)

    def add(
        self,
        control_runs: ControlRuns,
        first_offset: int,
        last_offset: int,
        *,
        reads_max: int = READS_MAX,
    ) -> bool:
        """Adds the available records of a range to the last read or as one more; whether it fits."""
        count = control_runs.data_count(first_offset, last_offset)
        return self._add_read(control_runs, PlannedRead(first_offset, count, last_offset), reads_max)

    def add_new(
        self, control_runs: ControlRuns, first_offset: int, count: int, *, reads_max: int = READS_MAX
    ) -> None:
        """Adds `count` new records from an offset on, if the reads leave room for them."""
        self.new_from, self.new_count = first_offset, count
        read = _new_read((first_offset, count, UNBOUNDED_OFFSET))
        if self.reads:
            self._add_read(control_runs, read, reads_max)
        else:
            self.reads.append(read)

    def _add_read(self, control_runs: ControlRuns, read: PlannedRead, reads_max: int) -> bool:
        """Joins a read to the last one if few records lie between them."""
        reads = self.reads
        if reads:
            first_offset, count, last_offset = read
            newest = reads[-1]
            skipped_count = control_runs.data_count(newest.last_offset + 1, first_offset - 1)
            if skipped_count <= READ_GAP_MAX:
                count += newest.record_count + skipped_count
                reads[-1] = PlannedRead(newest.first_offset, count, last_offset)
                return True
            if len(reads) == reads_max:
                return False
        reads.append(read)
        return True


NO_READS: Final = AcquirePlan()


# The choice of available records. A plan and an acquisition choose the same ones.


class AvailablePart(NamedTuple):
    """A piece of an available run; both offsets are data offsets, inclusive."""

    batch: Batch
    first_offset: int
    last_offset: int
    delivery_count: int


class Selection(NamedTuple):
    """Parts that may be delivered together, ascending, and their number of records."""

    parts: list[AvailablePart]
    record_count: int
    is_closed: bool
    """Nothing may follow: the last records must be delivered without others, or there are many parts."""


NONE_SELECTED: Final = Selection([], 0, is_closed=False)


def select_available(
    window: Window, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode, spans: Sequence[Span]
) -> Selection:
    """The available records within the spans that may be delivered together, lowest first.

    An in-flight batch is delivered whole if there is no record limit, even beyond `records_max`. Of an unread
    batch no more than that is selected: the caller goes on to the producer batch's end.
    """
    if window.available_from is None:
        return NONE_SELECTED
    is_limited = acquire_mode is AcquireMode.RECORD_LIMIT
    return select_parts(window, _available_batches(window, spans), records_max, limits, is_limited=is_limited)


def select_parts(
    window: Window,
    parts_of_batches: Iterable[list[AvailablePart]],
    records_max: int,
    limits: ShareLimits,
    *,
    is_limited: bool,
) -> Selection:
    """Those of the parts that may be delivered together; `parts_of_batches` has a list for each in-flight
    batch, ascending. See `select_available`.
    """
    selected: list[AvailablePart] = []
    record_count = 0
    count_min = throttle_count_min(limits.delivery_count_max)
    for parts in parts_of_batches:
        is_cut = is_limited or parts[0].batch.kind is UNREAD
        budget = records_max - record_count if is_cut else UNLIMITED_COUNT
        if max([part.delivery_count for part in parts]) >= count_min:
            if not selected:
                selected, record_count = _throttle(window.control_runs, parts, budget, limits)
            return Selection(selected, record_count, is_closed=True)
        taken, count = _limit(window.control_runs, parts, budget)
        selected += taken
        record_count += count
        if record_count >= records_max:
            break
    return Selection(selected, record_count, is_closed=False)


def _available_batches(window: Window, spans: Sequence[Span]) -> Iterator[list[AvailablePart]]:
    """The available parts of each batch that has any."""
    assert window.available_from is not None
    first_offset = max(window.available_from, spans[0][0])
    last_offset = min(window.available_to, spans[-1][1])
    if not window.waits.has_delayed:
        yield from _parts_between(window, first_offset, last_offset, spans)
        return
    for first, last in window.waits.available.between(first_offset, last_offset):
        first_offset = max(first, first_offset)
        if first_offset <= last:
            for parts in _parts_between(window, first_offset, min(last, last_offset), spans):
                yield parts
                first_offset = parts[0].batch.last_offset + 1


def _parts_between(
    window: Window, first_offset: int, last_offset: int, spans: Sequence[Span]
) -> Iterator[list[AvailablePart]]:
    """The available parts of each batch that overlaps the range and has any."""
    for position in range(window.batch_index(first_offset), len(window.batches)):
        batch = window.batches[position]
        if batch.base_offset > last_offset:
            return
        parts = available_parts(window.control_runs, batch, spans)
        if parts:
            yield parts


def available_parts(control_runs: ControlRuns, batch: Batch, spans: Sequence[Span]) -> list[AvailablePart]:
    """The available records of a batch within the spans, without those that wait until they are due."""
    parts: list[AvailablePart] = []
    for run in batch.runs:
        if run.state is not AVAILABLE or run.condition is not None:
            continue
        for span_first_offset, span_last_offset in spans:
            first_offset = control_runs.next_data_offset(max(run.first_offset, span_first_offset))
            last_offset = min(run.last_offset, span_last_offset)
            if first_offset <= last_offset:
                last_offset = control_runs.previous_data_offset(last_offset)
                parts.append(AvailablePart(batch, first_offset, last_offset, run.delivery_count))
    return parts


def _limit(
    control_runs: ControlRuns, parts: Iterable[AvailablePart], budget: int
) -> tuple[list[AvailablePart], int]:
    """The first `budget` records of the parts, and their number."""
    limited: list[AvailablePart] = []
    total = 0
    for part in parts:
        count = control_runs.data_count(part.first_offset, part.last_offset)
        if total + count <= budget:
            limited.append(part)
            total += count
            continue
        if total < budget:
            last_offset = control_runs.nth_data_offset(part.first_offset, budget - total)
            limited.append(part._replace(last_offset=last_offset))
        return limited, budget
    return limited, total


def _throttle(
    control_runs: ControlRuns, parts: list[AvailablePart], budget: int, limits: ShareLimits
) -> tuple[list[AvailablePart], int]:
    """The few records that are delivered together from a batch with records near their delivery limit, and
    their number, which is at most `budget`.

    The first part near the limit sets the number; the counts of later parts do not change it. A part that has
    to be delivered alone is not selected behind another one.
    """
    count_max = limits.delivery_count_max
    count_min = throttle_count_min(count_max)
    near = next(index for index, part in enumerate(parts) if part.delivery_count >= count_min)
    selected, total = _limit(control_runs, parts[:near], budget)
    near_count = parts[near].delivery_count
    if is_delivered_alone(near_count, count_max):
        return (selected, total) if selected else _limit(control_runs, parts[near:], 1)
    batch = parts[near].batch
    batch_size = control_runs.data_count(batch.base_offset, batch.last_offset)
    together_max = min(budget, throttled_records_max(batch_size, near_count, count_min))
    if total >= together_max:
        return selected, total
    not_alone = takewhile(lambda part: not is_delivered_alone(part.delivery_count, count_max), parts[near:])
    taken, count = _limit(control_runs, not_alone, together_max - total)
    return selected + taken, total + count


class Acquisition:
    """One acquisition, and its result: the records that the member holds from now on."""

    __slots__ = (
        "_deadline_ms",
        "_demand",
        "_found",
        "_window",
        "acquired",
        "batches",
        "gaps",
        "more_may_follow",
        "overtaking_count",
    )

    def __init__(self, window: Window, demand: Demand, found: Found) -> None:
        self._window = window
        self._demand = demand
        self._found = found
        self._deadline_ms = demand.now_ms + demand.limits.lock_duration_ms
        self.acquired: list[tuple[int, int, int]] = []
        """(first offset, last offset, delivery count): disjoint, ascending, without control offsets."""
        self.gaps: Decision | None = None
        """The records that were found to be gone: to be recorded."""
        self.batches: list[Batch] = []
        """Those in which records come in flight, or were in flight and had never been read."""
        self.more_may_follow = False
        """Whether the next acquisition may get records immediately, although this one got none. All the
        records that this one found have been archived, or priorities have to choose again. It is not set if
        this acquisition has only looked at new records: `SharePartition.looked_until` has moved then.
        """
        self.overtaking_count = 0
        """The acquired records that were preferred to an earlier available one, by their priorities."""

    def gone(self) -> Decision:
        """The decision about records that are gone."""
        if self.gaps is None:
            self.gaps = Decision()
        return self.gaps

    def archive(self, first_offset: int, last_offset: int, was: RecordState, cause: Cause) -> None:
        """Archives the records of the range (data offsets) that are in state `was`.

        That must not be ACQUIRED for records acquired before this acquisition: a change of theirs may be
        pending.
        """
        for batch, run in self._window.parts(first_offset, last_offset, lambda run: run.state is was):
            self.gone().change_now(self._window, batch, run, ARCHIVED, cause)

    def spans_of(self, plan: AcquirePlan) -> list[Span]:
        """The offsets that the reads have covered, holes between their batches included; ascending and
        disjoint.
        """
        batches = self._found.batches
        spans: list[Span] = []
        for first_offset, _, planned_last_offset in plan.reads:
            if first_offset > batches[-1].last_offset:
                break
            index = len(batches) - 1
            if planned_last_offset < batches[index].base_offset:
                first_index = _first_reaching(batches, first_offset)
                index = bisect_right(batches, planned_last_offset, key=_base_offset_of) - 1
                index = max(first_index, index)
            if spans and first_offset <= spans[-1][1]:
                spans[-1] = (spans[-1][0], batches[index].last_offset)
            else:
                spans.append((first_offset, batches[index].last_offset))
        return spans

    def archive_gaps(self, plan: AcquirePlan) -> None:
        """Archives available records that a read from their offset on did not find: compaction took them."""
        batches = self._found.batches
        for first_offset, _, _ in plan.reads:
            index = _first_reaching(batches, first_offset)
            if index < len(batches) and batches[index].base_offset > first_offset:
                last_offset = self._window.control_runs.previous_data_offset(batches[index].base_offset - 1)
                self.archive(first_offset, last_offset, AVAILABLE, Cause.GAP)

    def admit_new(self, spans: Sequence[Span]) -> None:
        """In a group with a timing, the new records come in flight before the selection, if the first of them
        was read.
        """
        found, demand = self._found, self._demand
        assert found.timed is not None
        first_offset = self._window.control_runs.next_data_offset(self._window.speo)
        new = found.batches if spans[-1][0] <= first_offset <= spans[-1][1] else ()
        self.batches += admit(self._window, self.gone(), new, found.timed, demand.batch_size, demand.limits)

    def take_parts(self, parts: Iterable[AvailablePart]) -> None:
        """Acquires available records; neighbours of one batch with equal counts are one range for the
        client.
        """
        window, demand, ranges = self._window, self._demand, self.acquired
        previous_batch: Batch | None = None
        for batch, first_offset, last_offset, delivery_count in parts:
            if batch.kind is UNREAD:
                self._take_unread(batch, first_offset, last_offset)
                continue
            boundary = window.boundary(first_offset)
            run = batch.isolate(batch.run_index(first_offset), boundary, last_offset)
            run.hold(demand.member_id, self._deadline_ms, demand.now_ms)
            batch.join(run.first_offset, last_offset)
            if (
                batch is previous_batch
                and ranges[-1][1] + 1 == boundary
                and ranges[-1][2] == delivery_count + 1
            ):
                ranges[-1] = (ranges[-1][0], last_offset, delivery_count + 1)
            else:
                ranges.append((first_offset, last_offset, delivery_count + 1))
            previous_batch = batch
        if ranges:
            window.note_deadline(self._deadline_ms)

    def hold_all(self, batch: Batch, bounds: Sequence[Span]) -> None:
        """Acquires many small parts of one batch: (boundary, last offset) of each, ascending."""
        for run in batch.isolate_all(bounds):
            run.hold(self._demand.member_id, self._deadline_ms, self._demand.now_ms)
        self._window.note_deadline(self._deadline_ms)

    def take_new(self, first_offset: int, read_last_offset: int, wanted: int) -> None:
        """Puts new records in flight: `wanted`, or up to the end of the producer batch that they end in."""
        window, batches = self._window, self._found.batches
        if (
            len(batches) == 1
            and batches[0].base_offset <= first_offset
            and self._demand.acquire_mode is not AcquireMode.RECORD_LIMIT
        ):
            owner, now_ms = self._demand.member_id, self._demand.now_ms
            run = Run(window.speo, read_last_offset, ACQUIRED, 1, owner, self._deadline_ms, None, now_ms)
            batch = Batch(window.speo, read_last_offset, [run])
            self.batches.append(batch)
            self.acquired.append((first_offset, read_last_offset, 1))
            window.append(batch)
            window.note_deadline(self._deadline_ms)
            return
        base_offset = batches[_first_reaching(batches, first_offset)].base_offset
        if base_offset > first_offset:
            first_offset = self._pass_hole(base_offset)
        wanted_last_offset = window.control_runs.nth_data_offset(first_offset, wanted)
        last_offset = read_last_offset
        if wanted_last_offset < read_last_offset:
            last_offset = _end_of_batch(batches, wanted_last_offset)
        for batch in self._cut(window.speo, first_offset, wanted_last_offset, last_offset):
            window.append(batch)
        acquired_last_offset = self.acquired[-1][1]
        if acquired_last_offset < last_offset:
            window.note_available(acquired_last_offset + 1, last_offset)
        window.note_deadline(self._deadline_ms)

    def leave_out_control_offsets(self) -> None:
        """Splits the acquired ranges where control offsets lie in them."""
        control_runs = self._window.control_runs
        if len(control_runs):
            self.acquired = [
                (first, last, delivery_count)
                for first_offset, last_offset, delivery_count in self.acquired
                for first, last in control_runs.data_ranges(first_offset, last_offset)
            ]

    def finish(self, *, has_looked_on: bool) -> None:
        """Takes out of the acquired records those that no member gets. `has_looked_on` if records were looked
        at for the first time.
        """
        found, taken = self._found, self.acquired
        if found.aborted:
            self._archive_acquired(found.aborted, Cause.TRANSACTION_ABORTED)
        if found.unreadable:
            self._archive_acquired(found.unreadable, Cause.GAP)
        if found.has_empty:
            self._archive_empty()
        if self.gaps is not None and self.gaps.is_empty:
            self.gaps = None
        if not self.acquired:
            self.more_may_follow = bool(taken) or not (self.gaps is None or has_looked_on)

    def _take_unread(self, batch: Batch, first_offset: int, wanted_last_offset: int) -> None:
        """Replaces a batch in flight that had never been read with the producer batches that were found."""
        base_offset = batch.runs[batch.run_index(first_offset)].first_offset
        last_offset = min(_end_of_batch(self._found.batches, wanted_last_offset), batch.last_offset)
        read = self._cut(base_offset, first_offset, wanted_last_offset, last_offset)
        self._window.replace_unread(batch, read)

    def _cut(
        self, base_offset: int, first_offset: int, wanted_last_offset: int, last_offset: int
    ) -> list[Batch]:
        """The batches of records that are delivered for the first time, from the one at `first_offset` on.
        The member gets all of it, or the wanted number with a record limit.
        """
        cut: list[Batch] = []
        if self._demand.acquire_mode is AcquireMode.RECORD_LIMIT:
            acquired_last_offset = min(wanted_last_offset, last_offset)
            cut.append(self._new_batch(base_offset, acquired_last_offset, last_offset))
            self.acquired.append((first_offset, acquired_last_offset, 1))
        else:
            for end in piece_ends(
                self._window.control_runs,
                self._found.batches,
                first_offset,
                last_offset,
                self._demand.batch_size,
            ):
                cut.append(self._new_batch(base_offset, end, end))
                self.acquired.append((first_offset, end, 1))
                base_offset = first_offset = end + 1
        self.batches += cut
        return cut

    def _new_batch(self, base_offset: int, acquired_last_offset: int, last_offset: int) -> Batch:
        """Acquired up to one offset, and available behind it."""
        owner, now_ms = self._demand.member_id, self._demand.now_ms
        runs = [Run(base_offset, acquired_last_offset, ACQUIRED, 1, owner, self._deadline_ms, None, now_ms)]
        if acquired_last_offset < last_offset:
            runs.append(Run(acquired_last_offset + 1, last_offset, AVAILABLE, 0))
        return Batch(base_offset, last_offset, runs)

    def _pass_hole(self, found_offset: int) -> int:
        """Skips compacted records from the SPEO up to the first offset that was found.

        They are archived without a record of their own: the next record that is written fills them in.
        """
        window = self._window
        last_offset = window.control_runs.previous_data_offset(found_offset - 1)
        hole = Run(window.speo, last_offset, ARCHIVED, 0)
        window.append(Batch(window.speo, last_offset, [hole]))
        window.advance()
        return found_offset

    def _archive_acquired(self, gone_batches: Sequence[Span], cause: Cause) -> None:
        for base_offset, last_offset in gone_batches:
            remaining: list[tuple[int, int, int]] = []
            for first, last, delivery_count in self.acquired:
                low, high = max(first, base_offset), min(last, last_offset)
                if low > high:
                    remaining.append((first, last, delivery_count))
                    continue
                self.archive(low, high, ACQUIRED, cause)
                if first < low:
                    remaining.append((first, low - 1, delivery_count))
                if high < last:
                    remaining.append((high + 1, last, delivery_count))
            self.acquired = remaining

    def _archive_empty(self) -> None:
        """Archives the acquired ranges in which no batch has data.

        librdkafka acknowledges such offsets only beside records, so that a range of them would stay acquired
        until its lock ends, and come back until the delivery limit.
        """
        batches = self._found.batches
        with_data: list[tuple[int, int, int]] = []
        for first_offset, last_offset, delivery_count in self.acquired:
            index = first_index = _first_reaching(batches, first_offset)
            while (
                index < len(batches)
                and batches[index].base_offset <= last_offset
                and not batches[index].has_data
            ):
                index += 1
            is_empty = index > first_index and (
                index == len(batches) or batches[index].base_offset > last_offset
            )
            if is_empty:
                self.archive(first_offset, last_offset, ACQUIRED, Cause.GAP)
            else:
                with_data.append((first_offset, last_offset, delivery_count))
        self.acquired = with_data


def _first_reaching(batches: Sequence[ProducerBatch], offset: int) -> int:
    """The index of the first batch that ends at or behind `offset`: usually the first one, or the last."""
    if offset <= batches[0].last_offset:
        return 0
    if len(batches) > 1 and batches[-2].last_offset < offset <= batches[-1].last_offset:
        return len(batches) - 1
    return bisect_left(batches, offset, key=_last_offset_of)


def _end_of_batch(batches: Sequence[ProducerBatch], offset: int) -> int:
    """The last offset of the batch that holds `offset`, or `offset` itself if it is in a hole."""
    batch = batches[_first_reaching(batches, offset)]
    return batch.last_offset if batch.base_offset <= offset else offset
