"""The order of keys (`share.order=key`), of priorities (`share.priority.header`), or of both: a policy.

New records come in flight as available ones when their keys and priorities have become known, and the lowest,
or the most urgent, of those whose keys are free are delivered. So records that wait for their key occupy the
in-flight window, which bounds the memory for keys. `key_order` keeps the records by their keys, `priorities`
by their priorities.

`overtaken` has the held records that are taken back because a record before them is delivered again. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.extended.runs import RunKind, Runs
from barnabas.share.partition.acquisition import (
    EVERYTHING,
    READS_MAX,
    AcquirePlan,
    Acquisition,
    AvailablePart,
    Demand,
    Found,
    Selection,
    available_parts,
    select_parts,
)
from barnabas.share.partition.arrival import admit, put_in_flight
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.key_order import BatchKeys, KeyOrder
from barnabas.share.partition.limits import AcquireMode, ShareLimits, throttle_count_min
from barnabas.share.partition.locks import archive
from barnabas.share.partition.overtaken import has_runs
from barnabas.share.partition.record_order import BY_OFFSET, RecordOrder
from barnabas.share.partition.window import (
    ACQUIRED,
    AVAILABLE,
    Batch,
    Run,
    Span,
    Window,
)

PARTS_MAX: Final = 32
"""The most ranges of neighbouring offsets in one delivery. Each range costs as much as dozens of records that
follow each other, so few and long ones are faster for brokers and clients. The next fetch gets the others.
"""

_batch_of = attrgetter("batch")
_delivery_count_of = attrgetter("delivery_count")
_first_offset_of = attrgetter("first_offset")


def order_of(known_until: int, limits: ShareLimits) -> RecordOrder:
    """A new order by a group's limits."""
    return KeyedOrder(KeyOrder.of(known_until, limits)) if limits.is_ordered else BY_OFFSET


class KeyedOrder(RecordOrder):
    """The policy of one window. `keys` has its unfinished records."""

    __slots__ = ("_keys",)

    def __init__(self, keys: KeyOrder) -> None:
        self._keys = keys

    @property
    def keys(self) -> KeyOrder:
        """See `RecordOrder`."""
        return self._keys

    @property
    def has_priorities(self) -> bool:
        """See `RecordOrder`."""
        return self._keys.priorities is not None

    def follows(self, limits: ShareLimits) -> bool:
        """See `RecordOrder`."""
        return self._keys.follows(limits)

    def begin(self, window: Window) -> None:
        """See `RecordOrder`."""
        window.forget_unread()

    # Acquisitions.

    def looked_until(self, window: Window) -> int:
        """See `RecordOrder`."""
        return self._keys.known_until

    def plan(self, window: Window, demand: Demand) -> AcquirePlan:
        """See `RecordOrder`. With priorities, a plan for available records has no new ones: a look ahead has
        read those before.
        """
        keys, control_runs = self._keys, window.control_runs
        plan = AcquirePlan()
        has_priorities = keys.priorities is not None
        reads_max = READS_MAX
        if keys.priorities is not None:
            keys.priorities.overtaken_max = demand.limits.priority.overtaken_max
            reads_max = PARTS_MAX
        selection = self.select(window, demand, demand.records_max, EVERYTHING)
        for part in selection.parts:
            if not plan.add(control_runs, part.first_offset, part.last_offset, reads_max=reads_max):
                return plan
        plan.available_count = selection.record_count
        if has_priorities and selection.parts:
            if keys.alone is None:
                plan.chosen = [(part.first_offset, part.last_offset) for part in selection.parts]
            return plan
        new_count = 0 if selection.is_closed else self._room(window, demand.limits)
        if not has_priorities:
            new_count = min(demand.records_max - selection.record_count, new_count)
        if new_count > 0:
            new_from = control_runs.next_data_offset(keys.known_until)
            plan.add_new(control_runs, new_from, new_count, reads_max=reads_max)
        return plan

    def acquire(self, window: Window, plan: AcquirePlan, demand: Demand, found: Found) -> Acquisition:
        """See `RecordOrder`. The data of the batches need no look: those without are archived when their keys
        are added.
        """
        keys = self._keys
        acquisition = Acquisition(window, demand, found)
        spans = acquisition.spans_of(plan)
        if not spans:
            return acquisition
        looked_until = keys.known_until
        acquisition.archive_gaps(plan)
        if found.timed is not None:
            acquisition.admit_new(spans)
        batches = found.keys
        if plan.chosen:  # A read passes over compacted records, and may reach new ones.
            batches = [batch for batch in batches if batch.base_offset < looked_until]
        acquisition.batches += self._add(
            window, acquisition.gone(), batches, found.aborted, demand.batch_size
        )
        has_looked_on = keys.known_until != looked_until
        if self._has_to_choose_again(plan, acquisition.gone(), has_looked_on=has_looked_on):
            acquisition.finish(has_looked_on=has_looked_on)
            acquisition.more_may_follow = not has_looked_on
            return acquisition
        if plan.chosen:
            spans = _overlaps(plan.chosen, spans)
        if spans:
            self._take(acquisition, window, self.select(window, demand, demand.records_max, spans).parts)
        acquisition.finish(has_looked_on=has_looked_on)
        return acquisition

    def plan_look_ahead(self, window: Window, limits: ShareLimits) -> AcquirePlan:
        """See `RecordOrder`. None if the window has no room."""
        plan = AcquirePlan()
        keys, control_runs = self._keys, window.control_runs
        if keys.priorities is None or not keys.free_count or window.awaits_locks:
            return plan
        room = self._room(window, limits)
        if room > 0:
            plan.add_new(control_runs, control_runs.next_data_offset(keys.known_until), room)
        return plan

    def look_ahead(self, window: Window, demand: Demand, found: Found) -> Acquisition:
        """See `RecordOrder`."""
        looked = Acquisition(window, demand, found)
        gone, limits, batch_size = looked.gone(), demand.limits, demand.batch_size
        if found.timed is not None:
            looked.batches += admit(window, gone, found.batches, found.timed, batch_size, limits)
        looked.batches += self._add(window, gone, found.keys, found.aborted, batch_size)
        looked.finish(has_looked_on=True)
        return looked

    def runs(self, limits: ShareLimits) -> Runs | None:
        """See `RecordOrder`."""
        if not has_runs(self._keys):
            return None
        kind = RunKind.KEYS if self._keys.alone is None else RunKind.ALL
        return Runs(kind, limits.delivery_count_max)

    def _take(self, acquisition: Acquisition, window: Window, parts: Sequence[AvailablePart]) -> None:
        """Acquires the parts, which are many and small, batch by batch."""
        keys = self._keys
        for batch, of_batch in groupby(parts, key=_batch_of):
            bounds: list[Span] = []
            for _, first_offset, last_offset, delivery_count in of_batch:
                keys.take(first_offset, last_offset)
                bounds.append((window.boundary(first_offset), last_offset))
                acquisition.acquired.append((first_offset, last_offset, delivery_count + 1))
            acquisition.hold_all(batch, bounds)
        if parts and keys.priorities is not None:
            acquisition.overtaking_count = keys.note_delivered(
                (part.first_offset, part.last_offset) for part in parts
            )

    def _has_to_choose_again(self, plan: AcquirePlan, gone: Decision, *, has_looked_on: bool) -> bool:
        """Whether priorities may choose other records now: more urgent ones are known, or will be free when
        it is recorded that others are gone.
        """
        if self._keys.priorities is None or self._keys.alone is not None:
            return False
        return not gone.is_empty or (bool(plan.chosen) and has_looked_on)

    # The choice of records.

    def select(self, window: Window, demand: Demand, records_max: int, spans: Sequence[Span]) -> Selection:
        """The available records within the spans that may be delivered together: at most `records_max`, the
        lowest or the most urgent ones, or a batch that is delivered alone.
        """
        keys, limits = self._keys, demand.limits
        if keys.alone is not None:
            alone = _parts_alone(window, keys.alone, spans)
            is_limited = demand.acquire_mode is AcquireMode.RECORD_LIMIT
            return select_parts(window, alone, records_max, limits, is_limited=is_limited)
        offsets = keys.next_records(records_max, spans)
        if keys.priorities is not None:
            return self._select_by_urgency(window, offsets, limits)
        parts_of_batches = list(_parts(window, offsets, PARTS_MAX))
        parts = list(chain.from_iterable(parts_of_batches))
        if max(map(_delivery_count_of, parts), default=0) < throttle_count_min(limits.delivery_count_max):
            return Selection(parts, len(offsets), is_closed=len(parts) == PARTS_MAX)
        return select_parts(window, parts_of_batches, records_max, limits, is_limited=True)

    def _select_by_urgency(self, window: Window, by_urgency: Sequence[int], limits: ShareLimits) -> Selection:
        """As many of the records, from the first one on, as lie in `PARTS_MAX` parts, which ascend.

        A batch with records near the delivery limit comes by its most urgent record. Those of its records
        that are delivered together are chosen as without priorities. The later records of a key wait for the
        next delivery then, because the first one may be in a batch that is left out.
        """
        by_urgency, parts_of_batches = _few_parts(window, by_urgency)
        parts = list(chain.from_iterable(parts_of_batches))
        if max(map(_delivery_count_of, parts), default=0) < throttle_count_min(limits.delivery_count_max):
            return Selection(parts, len(by_urgency), is_closed=len(parts) == PARTS_MAX)
        if self._keys.run_max > 1:
            by_urgency, parts_of_batches = _few_parts(window, self._keys.first_of_keys(by_urgency))
        rank = {offset: index for index, offset in enumerate(by_urgency)}
        parts_of_batches.sort(
            key=lambda parts: min(
                rank[offset] for part in parts for offset in range(part.first_offset, part.last_offset + 1)
            )
        )
        selection = select_parts(window, parts_of_batches, len(by_urgency), limits, is_limited=True)
        return selection._replace(parts=sorted(selection.parts, key=_first_offset_of))

    def _room(self, window: Window, limits: ShareLimits) -> int:
        """The number of records whose keys may still be added; 0 or less if there is no room."""
        keys = self._keys
        if keys.alone is not None:
            if window.spso <= keys.alone[1]:
                return 0
            keys.alone = None
        if keys.waits_until_empty and not keys.is_empty:
            return 0
        if not window.waits.has_delayed:
            size = window.control_runs.data_count(window.spso, keys.known_until - 1)
        else:
            # The keys of all others in the window are read after a restart: their number was bounded when
            # they came in flight.
            size = window.size() if keys.known_until >= window.speo else 0
        room = limits.record_locks_max - size
        if keys.priorities is None:
            return room
        return min(room, limits.priority.window_records - keys.free_count)

    # New records.

    def _add(
        self,
        window: Window,
        gone: Decision,
        batches: Sequence[BatchKeys],
        aborted: Sequence[Span],
        batch_size: int,
    ) -> list[Batch]:
        """Adds the batches that were read from `known_until` on, up to one that must be delivered alone.

        Records of aborted batches, and offsets without a record, are archived; `gone` has that, to be
        recorded. So are the available records of earlier batches from which compaction has removed them
        meanwhile. Returns the new batches in flight.
        """
        keys = self._keys
        for batch in batches:
            if batch.last_offset < keys.known_until:
                _archive_holes(window, gone, batch)
        found = [batch for batch in batches if batch.last_offset >= keys.known_until]
        added = found[: self._addable_count(found)]
        keys.waits_until_empty = len(added) < len(found)
        new = put_in_flight(window, added, batch_size)
        without_effect = frozenset(aborted)
        for batch in added:
            _archive(window, gone, keys.known_until, batch.base_offset - 1, Cause.GAP)
            if (batch.base_offset, batch.last_offset) in without_effect:
                _archive(window, gone, batch.base_offset, batch.last_offset, Cause.TRANSACTION_ABORTED)
            elif batch.keys is None:
                keys.alone = (max(batch.base_offset, window.spso), batch.last_offset)
            elif batch.base_offset < keys.known_until:  # Reading had stopped at a record that was not due.
                self._add_batch(window, gone, batch.between(keys.known_until, batch.last_offset))
            else:
                self._add_batch(window, gone, batch)
            keys.known_until = batch.last_offset + 1
        return new

    def _addable_count(self, batches: Sequence[BatchKeys]) -> int:
        """A batch without known keys comes alone, and only if no record before it is unfinished."""
        for index, batch in enumerate(batches):
            if batch.keys is None:
                return index or int(self._keys.is_empty)
        return len(batches)

    def _add_batch(self, window: Window, gone: Decision, batch: BatchKeys) -> None:
        base_offset, last_offset, known, priorities = batch
        assert known is not None
        deltas, hashes = known
        if len(deltas) == last_offset - base_offset + 1:
            _, run = window.run_of(max(base_offset, window.spso))
            is_whole = run.first_offset <= base_offset and last_offset <= run.last_offset
            if run.state is AVAILABLE and run.condition is None and is_whole:
                self._keys.add(range(base_offset, last_offset + 1), hashes, priorities)
                return
        offsets = [base_offset + delta for delta in deltas]
        _archive_holes(window, gone, batch)
        for _, run in window.runs_between(base_offset, last_offset):
            if run.state is AVAILABLE or run.keeps_key:
                first = bisect_left(offsets, run.first_offset)
                end = bisect_right(offsets, run.last_offset, first)
                self._keys.add(offsets[first:end], hashes[first:end], priorities[first:end])
                if run.waits:
                    self._keys.hold_back(run.first_offset, min(run.last_offset, last_offset))
                elif run.keeps_key:
                    self._keys.keep(run.first_offset, min(run.last_offset, last_offset))

    # Inspection.

    def waiting_pieces(
        self, window: Window, first_offset: int, last_offset: int
    ) -> Iterator[tuple[int, int, bool]]:
        """See `RecordOrder`."""
        keys = self._keys
        if keys.alone is not None and window.spso <= keys.alone[1]:
            is_held = any(_keeps_others_back(run) for _, run in window.runs_between(*keys.alone))
            yield first_offset, last_offset, is_held
        else:
            yield from keys.waiting_pieces(first_offset, last_offset)

    def priority_pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, int | None]]:
        """See `RecordOrder`."""
        return self._keys.priority_pieces(first_offset, last_offset)


def _archive(window: Window, gone: Decision, first_offset: int, last_offset: int, cause: Cause) -> None:
    """Archives the available records of the range, which may begin with control offsets."""
    first_offset = window.control_runs.next_data_offset(max(first_offset, window.spso))
    if first_offset <= last_offset:
        last_offset = window.control_runs.previous_data_offset(last_offset)
        archive(window, gone, first_offset, last_offset, AVAILABLE, cause)


def _archive_holes(window: Window, gone: Decision, batch: BatchKeys) -> None:
    """Archives the available offsets of a batch that have no record, because compaction has removed it."""
    base_offset, last_offset, keys, _ = batch
    if keys is None or len(keys.offset_deltas) > last_offset - base_offset:
        return
    previous = base_offset - 1
    for offset in (*(base_offset + delta for delta in keys.offset_deltas), last_offset + 1):
        if offset > previous + 1:
            _archive(window, gone, previous + 1, offset - 1, Cause.GAP)
        previous = offset


def _few_parts(window: Window, by_urgency: Sequence[int]) -> tuple[Sequence[int], list[list[AvailablePart]]]:
    """As many of the records, from the first one on, as lie in `PARTS_MAX` parts, and these parts."""
    parts_of_batches = list(_parts(window, sorted(by_urgency), PARTS_MAX + 1))
    if sum(map(len, parts_of_batches)) > PARTS_MAX:
        by_urgency = _in_few_parts(window, by_urgency)
        parts_of_batches = list(_parts(window, sorted(by_urgency), PARTS_MAX))
    return by_urgency, parts_of_batches


def _in_few_parts(window: Window, by_urgency: Sequence[int]) -> Sequence[int]:
    """As many records, from the first one on, as lie in `PARTS_MAX` parts."""
    run_of: dict[int, Run] = {}
    part_count = 0
    for index, offset in enumerate(by_urgency):
        _, run = window.run_of(offset)
        part_count += 1 - (run_of.get(offset - 1) is run) - (run_of.get(offset + 1) is run)
        if part_count > PARTS_MAX:
            return by_urgency[:index]
        run_of[offset] = run
    return by_urgency


def _parts(window: Window, offsets: Sequence[int], parts_max: int) -> Iterator[list[AvailablePart]]:
    """Available records, ascending, as parts of the runs that hold them, for each in-flight batch; the first
    `parts_max` parts.
    """
    position, count = 0, len(offsets)
    parts_left = parts_max
    while position < count and parts_left:
        batch = window.batches[window.batch_index(offsets[position])]
        index = batch.run_index(offsets[position])
        parts: list[AvailablePart] = []
        while position < count and parts_left and offsets[position] <= batch.last_offset:
            first_offset = offsets[position]
            while batch.runs[index].last_offset < first_offset:
                index += 1
            run = batch.runs[index]
            assert run.state is AVAILABLE and not run.waits, (run.state, first_offset)
            position = _end_of_stretch(offsets, position, bisect_right(offsets, run.last_offset, position))
            parts.append(AvailablePart(batch, first_offset, offsets[position - 1], run.delivery_count))
            parts_left -= 1
        yield parts


def _end_of_stretch(offsets: Sequence[int], start: int, end: int) -> int:
    """The index behind the ascending offsets from `start` on that follow each other, at most `end`."""
    low, high, ahead = start + 1, end, offsets[start] - start
    if offsets[end - 1] - end + 1 == ahead:
        return end
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] - middle == ahead:
            low = middle + 1
        else:
            high = middle
    return low


def _parts_alone(window: Window, alone: Span, spans: Sequence[Span]) -> Iterator[list[AvailablePart]]:
    """The available records of a batch that is delivered alone, if no member holds another record of it, none
    of them waits, and all that are given up are recorded as such.
    """
    runs = list(window.runs_between(*alone))
    if any(_keeps_others_back(run) for _, run in runs):
        return
    inside = _overlaps(spans, (alone,))
    for batch in dict.fromkeys(batch for batch, _ in runs):
        parts = available_parts(window.control_runs, batch, inside)
        if parts:
            yield parts


def _overlaps(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The offsets that both have; both ends of each range are inclusive."""
    return [
        (max(first, other_first), min(last, other_last))
        for first, last in spans
        for other_first, other_last in others
        if first <= other_last and other_first <= last
    ]


def _keeps_others_back(run: Run) -> bool:
    """Whether no other record can be delivered beside the run, if its batch is delivered alone."""
    return run.state is ACQUIRED or run.waits or run.keeps_key
