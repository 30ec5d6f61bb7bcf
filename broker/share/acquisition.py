"""Acquiring records: which ones a fetch may have, and how they are handed out.

KIP-932 "In-flight records" and "Batching", KIP-1206 for the record limit, with Apache Kafka 4.3's throttling
of records near their delivery limit. First the plan says what to read, then the read batches say what there
is. Available records come before new ones, lowest first. Reading the log is the caller's part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.share.decision import Decision
from barnabas.broker.share.in_flight import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    InFlight,
    InFlightBatch,
    InFlightRun,
    UnreadBatch,
)
from barnabas.broker.share.limits import AcquireMode, ShareLimits
from barnabas.broker.share.locks import archive
from barnabas.broker.share.selection import (
    EVERYTHING,
    NONE_SELECTED,
    UNBOUNDED_OFFSET,
    AvailablePart,
    Selection,
    Span,
    select_available,
)
from barnabas.protocol.control_record import Cause
from barnabas.storage.format.control_runs import ControlRuns

READS_MAX = 16
"""Reads in a plan. Available records that lie too scattered for it wait for the next fetch."""

READ_GAP_MAX = 32
"""Records passed over within one read, rather than reading the log once more."""


class AcquirePlan(NamedTuple):
    """What to read before acquiring.

    `reads` is a list of (first_offset, records_max): the producer batches that overlap the `records_max` data
    offsets from `first_offset` on, or the next one there is; more do no harm. They are done in order and may
    be given up after any of them; a batch that two reads share is read once. `last_offsets` are where the
    reads are meant to end, inclusive.
    """

    reads: list[tuple[int, int]]
    last_offsets: list[int]


class Acquisition(NamedTuple):
    """Records acquired, as (first_offset, last_offset, delivery_count), and records found to be gone.

    The ranges are disjoint, ascending and name no control offset. `gaps`, if any, is to be recorded.
    """

    acquired: list[tuple[int, int, int]]
    gaps: Decision | None


class AcquireRequest(NamedTuple):
    """Who acquires, how much and how."""

    member_id: str
    records_max: int
    batch_size: int
    acquire_mode: AcquireMode
    limits: ShareLimits
    now_ms: int

    @property
    def lock_deadline_ms(self) -> int:
        return self.now_ms + self.limits.lock_duration_ms


def plan(
    in_flight: InFlight, records_max: int, limits: ShareLimits, acquire_mode: AcquireMode
) -> AcquirePlan:
    """What to read for `records_max` records; empty if none can be acquired now."""
    planned = AcquirePlan([], [])
    if records_max <= 0 or in_flight.spso < 0:
        return planned
    selection = NONE_SELECTED
    if in_flight.available_from is not None:
        selection = select_available(in_flight, records_max, limits, acquire_mode, EVERYTHING)
        _note_selected(in_flight, selection, records_max)
        for part in selection.parts:
            if not _add_read(planned, in_flight.control_runs, part.first_offset, part.last_offset):
                return planned
    wanted = _new_records_max(in_flight, records_max, limits, selection)
    if wanted > 0:
        first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
        _add_read(planned, in_flight.control_runs, first_offset, UNBOUNDED_OFFSET, wanted)
    return planned


def acquire(
    in_flight: InFlight,
    planned: AcquirePlan,
    request: AcquireRequest,
    batches: Sequence[tuple[int, int]],
    aborted: Sequence[tuple[int, int]] = (),
) -> Acquisition:
    """Acquires from what was read.

    `batches` are (base_offset, last_offset) of the producer batches, ascending; `aborted` are those of them
    that belong to aborted transactions, which are archived and not handed out.
    """
    if request.records_max <= 0 or not batches:
        return Acquisition([], None)
    spans = _spans(planned, batches)
    if not spans:
        return Acquisition([], None)
    gaps = None if in_flight.available_from is None else _archive_gaps(in_flight, planned, batches)
    ranges: list[tuple[int, int, int]] = []
    selection = NONE_SELECTED
    if in_flight.available_from is not None:
        selection = select_available(
            in_flight, request.records_max, request.limits, request.acquire_mode, spans
        )
        ranges = _take_parts(in_flight, selection.parts, batches, request)
    wanted = _new_records_max(in_flight, request.records_max, request.limits, selection)
    first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
    if wanted > 0 and spans[-1][0] <= first_offset <= spans[-1][1]:
        ranges += _take_new(in_flight, batches, first_offset, spans[-1][1], wanted, request)
    if aborted:
        gaps = gaps or Decision()
        ranges = _archive_aborted(in_flight, gaps, ranges, aborted)
    is_any_gone = gaps is not None and not gaps.is_empty
    return Acquisition(_for_client(in_flight.control_runs, ranges), gaps if is_any_gone else None)


def _note_selected(in_flight: InFlight, selection: Selection, records_max: int) -> None:
    """What a look at everything has shown of where available records are."""
    parts = selection.parts
    in_flight.available_from = parts[0].first_offset if parts else None
    if parts and selection.record_count < records_max and not selection.is_throttled:
        in_flight.available_to = parts[-1].last_offset


def _new_records_max(in_flight: InFlight, records_max: int, limits: ShareLimits, selection: Selection) -> int:
    """How many new records may follow the selected ones: the in-flight window bounds new records only."""
    if selection.is_throttled:
        return 0
    room = limits.record_locks_max - in_flight.record_count()
    return min(records_max - selection.record_count, room)


def _add_read(
    planned: AcquirePlan, control_runs: ControlRuns, first_offset: int, last_offset: int, count: int = 0
) -> bool:
    """Adds a range of `count` records, or all in it, to the last read or as one more; whether it fits."""
    reads, last_offsets = planned
    count = count or control_runs.data_count(first_offset, last_offset)
    if reads:
        passed_over = control_runs.data_count(last_offsets[-1] + 1, first_offset - 1)
        if passed_over <= READ_GAP_MAX:
            reads[-1] = (reads[-1][0], reads[-1][1] + passed_over + count)
            last_offsets[-1] = last_offset
            return True
        if len(reads) == READS_MAX:
            return False
    reads.append((first_offset, count))
    last_offsets.append(last_offset)
    return True


def _spans(planned: AcquirePlan, batches: Sequence[tuple[int, int]]) -> list[Span]:
    """The offsets that the reads have covered, holes between their batches included; ascending, disjoint."""
    spans: list[Span] = []
    for (first_offset, _), planned_last_offset in zip(*planned, strict=True):
        first_index = _first_reaching(batches, first_offset)
        if first_index == len(batches):
            break
        index = len(batches) - 1
        if planned_last_offset < batches[index][0]:
            index = max(first_index, bisect_right(batches, planned_last_offset, key=_base_offset) - 1)
        if spans and first_offset <= spans[-1][1]:
            spans[-1] = (spans[-1][0], batches[index][1])
        else:
            spans.append((first_offset, batches[index][1]))
    return spans


def _archive_gaps(in_flight: InFlight, planned: AcquirePlan, batches: Sequence[tuple[int, int]]) -> Decision:
    """Archives available records that a read from their offset on did not find: compaction took them."""
    decision = Decision()
    for first_offset, _ in planned.reads:
        index = _first_reaching(batches, first_offset)
        if index < len(batches) and batches[index][0] > first_offset:
            last_offset = in_flight.control_runs.previous_data_offset(batches[index][0] - 1)
            archive(in_flight, decision, first_offset, last_offset, AVAILABLE, Cause.GAP)
    return decision


def _take_parts(
    in_flight: InFlight,
    parts: list[AvailablePart],
    batches: Sequence[tuple[int, int]],
    request: AcquireRequest,
) -> list[tuple[int, int, int]]:
    """Acquires the parts again; neighbours of one batch with equal counts are one range for the client."""
    ranges: list[tuple[int, int, int]] = []
    previous_batch: InFlightBatch | None = None
    for part in parts:
        batch, first_offset, last_offset, delivery_count = part
        if isinstance(batch, UnreadBatch):
            ranges += _take_unread(in_flight, batch, part, batches, request)
            continue
        boundary = in_flight.boundary(first_offset)
        run = batch.isolate(batch.run_index(first_offset), boundary, last_offset)
        run.state = ACQUIRED
        run.delivery_count += 1
        run.owner = request.member_id
        run.lock_deadline_ms = request.lock_deadline_ms
        batch.join(run.first_offset, last_offset)
        if batch is previous_batch and ranges[-1][1] + 1 == boundary and ranges[-1][2] == delivery_count + 1:
            ranges[-1] = (ranges[-1][0], last_offset, delivery_count + 1)
        else:
            ranges.append((first_offset, last_offset, delivery_count + 1))
        previous_batch = batch
    if parts:
        in_flight.note_deadline(request.lock_deadline_ms)
    return ranges


def _take_unread(
    in_flight: InFlight,
    batch: UnreadBatch,
    part: AvailablePart,
    batches: Sequence[tuple[int, int]],
    request: AcquireRequest,
) -> list[tuple[int, int, int]]:
    """Puts a part of what was not read so far in flight like new records, in the producer batches found."""
    base_offset = batch.runs[batch.run_index(part.first_offset)].first_offset
    last_offset = min(_end_of_batch(batches, part.last_offset), batch.last_offset)
    taken, ranges = _cut(in_flight.control_runs, batches, base_offset, part.last_offset, last_offset, request)
    in_flight.replace_read(batch, taken)
    return ranges


def _take_new(
    in_flight: InFlight,
    batches: Sequence[tuple[int, int]],
    first_offset: int,
    read_last_offset: int,
    wanted: int,
    request: AcquireRequest,
) -> list[tuple[int, int, int]]:
    """Puts new records in flight: `wanted`, or up to the end of the producer batch that they end in."""
    first_offset = _pass_hole(in_flight, batches, first_offset)
    wanted_last_offset = in_flight.control_runs.nth_data_offset(first_offset, wanted)
    last_offset = read_last_offset
    if wanted_last_offset < read_last_offset:
        last_offset = _end_of_batch(batches, wanted_last_offset)
    taken, ranges = _cut(
        in_flight.control_runs, batches, in_flight.speo, wanted_last_offset, last_offset, request
    )
    for batch in taken:
        in_flight.append(batch)
    acquired_last_offset = ranges[-1][1]
    if acquired_last_offset < last_offset:
        in_flight.note_available(acquired_last_offset + 1, last_offset)
    in_flight.note_deadline(request.lock_deadline_ms)
    return ranges


def _end_of_batch(batches: Sequence[tuple[int, int]], offset: int) -> int:
    """The last offset of the producer batch that holds `offset`, or that itself if it is in a hole."""
    base_offset, last_offset = batches[_first_reaching(batches, offset)]
    return last_offset if base_offset <= offset else offset


def _cut(
    control_runs: ControlRuns,
    batches: Sequence[tuple[int, int]],
    base_offset: int,
    wanted_last_offset: int,
    last_offset: int,
    request: AcquireRequest,
) -> tuple[list[InFlightBatch], list[tuple[int, int, int]]]:
    """The batches in which records go out for the first time, and what of them the member gets: all of it, or
    with a record limit what it wanted.
    """
    first_offset = control_runs.next_data_offset(base_offset)
    if request.acquire_mode is AcquireMode.RECORD_LIMIT:
        acquired_last_offset = min(wanted_last_offset, last_offset)
        batch = _new_batch(base_offset, acquired_last_offset, last_offset, request)
        return [batch], [(first_offset, acquired_last_offset, 1)]
    taken: list[InFlightBatch] = []
    ranges: list[tuple[int, int, int]] = []
    for piece_last_offset in _piece_ends(
        control_runs, batches, first_offset, last_offset, request.batch_size
    ):
        taken.append(_new_batch(base_offset, piece_last_offset, piece_last_offset, request))
        ranges.append((first_offset, piece_last_offset, 1))
        base_offset = first_offset = piece_last_offset + 1
    return taken, ranges


def _new_batch(
    base_offset: int, acquired_last_offset: int, last_offset: int, request: AcquireRequest
) -> InFlightBatch:
    """Acquired up to one offset, and available behind it."""
    runs = [
        InFlightRun(
            base_offset, acquired_last_offset, ACQUIRED, 1, request.member_id, request.lock_deadline_ms
        )
    ]
    if acquired_last_offset < last_offset:
        runs.append(InFlightRun(acquired_last_offset + 1, last_offset, AVAILABLE, 0))
    return InFlightBatch(base_offset, last_offset, runs)


def _pass_hole(in_flight: InFlight, batches: Sequence[tuple[int, int]], first_offset: int) -> int:
    """Passes over records behind the SPEO that compaction took; the first offset that was found.

    They are archived without a record of their own: the next one that is written fills them in.
    """
    base_offset = batches[_first_reaching(batches, first_offset)][0]
    if base_offset <= first_offset:
        return first_offset
    last_offset = in_flight.control_runs.previous_data_offset(base_offset - 1)
    hole = InFlightRun(in_flight.speo, last_offset, ARCHIVED, 0)
    in_flight.append(InFlightBatch(in_flight.speo, last_offset, [hole]))
    in_flight.advance()
    return base_offset


def _piece_ends(
    control_runs: ControlRuns,
    batches: Sequence[tuple[int, int]],
    first_offset: int,
    last_offset: int,
    batch_size: int,
) -> list[int]:
    """The last offsets of the pieces of at least `batch_size` records, cut where producer batches begin."""
    ends: list[int] = []
    if control_runs.data_count(first_offset, last_offset) > batch_size:
        for base_offset, _ in batches:
            if base_offset > last_offset:
                break
            if base_offset > first_offset:
                piece_last_offset = control_runs.previous_data_offset(base_offset - 1)
                if control_runs.data_count(first_offset, piece_last_offset) >= batch_size:
                    ends.append(piece_last_offset)
                    first_offset = base_offset
    ends.append(last_offset)
    return ends


def _archive_aborted(
    in_flight: InFlight,
    decision: Decision,
    ranges: list[tuple[int, int, int]],
    aborted: Sequence[tuple[int, int]],
) -> list[tuple[int, int, int]]:
    """Archives what was acquired of aborted transactions; what remains of the ranges."""
    for base_offset, last_offset in aborted:
        remaining: list[tuple[int, int, int]] = []
        for first, last, delivery_count in ranges:
            low, high = max(first, base_offset), min(last, last_offset)
            if low > high:
                remaining.append((first, last, delivery_count))
                continue
            archive(in_flight, decision, low, high, ACQUIRED, Cause.TRANSACTION_ABORTED)
            if first < low:
                remaining.append((first, low - 1, delivery_count))
            if high < last:
                remaining.append((high + 1, last, delivery_count))
        ranges = remaining
    return ranges


def _for_client(control_runs: ControlRuns, ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    if not len(control_runs):
        return ranges
    return [
        (first, last, delivery_count)
        for first_offset, last_offset, delivery_count in ranges
        for first, last in control_runs.data_ranges(first_offset, last_offset)
    ]


def _first_reaching(batches: Sequence[tuple[int, int]], offset: int) -> int:
    """The index of the first batch that ends at or behind `offset`: mostly the first one, or the last."""
    if offset <= batches[0][1]:
        return 0
    if len(batches) > 1 and batches[-2][1] < offset <= batches[-1][1]:
        return len(batches) - 1
    return bisect_left(batches, offset, key=_last_offset)


def _base_offset(batch: tuple[int, int]) -> int:
    return batch[0]


def _last_offset(batch: tuple[int, int]) -> int:
    return batch[1]
