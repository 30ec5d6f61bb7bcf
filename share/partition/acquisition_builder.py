"""Acquisition of the selected records by one fetch: the member owns them, locked from now on.

KIP-932 "Batching": new records come in flight as batches, which end where producer batches do; redelivered
records stay in their batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    InFlightBatch,
    InFlightRun,
    UnreadBatch,
)
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.limits import AcquireMode, ShareLimits
from barnabas.share.partition.producer_batches import (
    ProducerBatches,
    end_of_batch,
    first_reaching,
    piece_ends,
)
from barnabas.share.partition.selection import AvailablePart
from barnabas.share.partition.unread_batches import replace_read

_batch_of = attrgetter("batch")


class AcquireRequest(NamedTuple):
    """The member, the amount and the mode of an acquisition."""

    member_id: str
    records_max: int
    batch_size: int
    acquire_mode: AcquireMode
    limits: ShareLimits
    now_ms: int


class AcquisitionBuilder:
    """The result of one fetch, as `ranges` of (first_offset, last_offset, delivery_count), ascending.

    `batches` are those in which records come in flight, or were in flight and had never been read.
    """

    __slots__ = (
        "_deadline_ms",
        "_in_flight",
        "_producer_batches",
        "_request",
        "batches",
        "overtaking_count",
        "ranges",
    )

    def __init__(
        self, in_flight: InFlight, producer_batches: ProducerBatches, request: AcquireRequest
    ) -> None:
        self._in_flight = in_flight
        self._producer_batches = producer_batches
        self._request = request
        self._deadline_ms = request.now_ms + request.limits.lock_duration_ms
        self.ranges: list[tuple[int, int, int]] = []
        self.batches: list[InFlightBatch] = []
        self.overtaking_count = 0
        """The records that were preferred to an earlier one, by their priorities."""

    def acquire_parts(self, parts: Iterable[AvailablePart]) -> None:
        """Acquires the parts; neighbours of one batch with equal counts are one range for the client."""
        ranges = self.ranges
        previous_batch: InFlightBatch | None = None
        for part in parts:
            batch, first_offset, last_offset, delivery_count = part
            if isinstance(batch, UnreadBatch):
                self._acquire_unread(batch, first_offset, last_offset)
                continue
            boundary = self._in_flight.boundary(first_offset)
            run = batch.isolate(batch.run_index(first_offset), boundary, last_offset)
            run.state = ACQUIRED
            run.delivery_count += 1
            run.owner = self._request.member_id
            run.lock_deadline_ms = self._deadline_ms
            run.acquired_ms = self._request.now_ms
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
            self._in_flight.note_deadline(self._deadline_ms)

    def acquire_in_order(self, parts: Sequence[AvailablePart], order: KeyOrder) -> None:
        """Acquires the parts, which are many and small, batch by batch."""
        for batch, of_batch in groupby(parts, key=_batch_of):
            bounds: list[tuple[int, int]] = []
            for _, first_offset, last_offset, delivery_count in of_batch:
                order.take(first_offset, last_offset)
                bounds.append((self._in_flight.boundary(first_offset), last_offset))
                self.ranges.append((first_offset, last_offset, delivery_count + 1))
            for run in batch.isolate_all(bounds):
                run.state = ACQUIRED
                run.delivery_count += 1
                run.owner = self._request.member_id
                run.lock_deadline_ms = self._deadline_ms
                run.acquired_ms = self._request.now_ms
        if parts:
            self._in_flight.note_deadline(self._deadline_ms)
            if order.priorities is not None:
                self.overtaking_count = order.note_delivered(part[1:3] for part in parts)

    def acquire_new(self, first_offset: int, read_last_offset: int, wanted: int) -> None:
        """Puts new records in flight: `wanted`, or up to the end of the producer batch that they end in."""
        in_flight = self._in_flight
        first_offset = self._pass_hole(first_offset)
        wanted_last_offset = in_flight.control_runs.nth_data_offset(first_offset, wanted)
        last_offset = read_last_offset
        if wanted_last_offset < read_last_offset:
            last_offset = end_of_batch(self._producer_batches, wanted_last_offset)
        for batch in self._cut(in_flight.speo, first_offset, wanted_last_offset, last_offset):
            in_flight.append(batch)
        acquired_last_offset = self.ranges[-1][1]
        if acquired_last_offset < last_offset:
            in_flight.note_available(acquired_last_offset + 1, last_offset)
        in_flight.note_deadline(self._deadline_ms)

    def _acquire_unread(self, batch: UnreadBatch, first_offset: int, wanted_last_offset: int) -> None:
        """Replaces a batch in flight that had never been read with the producer batches that were found."""
        base_offset = batch.runs[batch.run_index(first_offset)].first_offset
        last_offset = min(end_of_batch(self._producer_batches, wanted_last_offset), batch.last_offset)
        read = self._cut(base_offset, first_offset, wanted_last_offset, last_offset)
        replace_read(self._in_flight, batch, read)

    def _cut(
        self, base_offset: int, first_offset: int, wanted_last_offset: int, last_offset: int
    ) -> list[InFlightBatch]:
        """The batches of records that are delivered for the first time, from the one at `first_offset` on.
        The member gets all of it, or the wanted number with a record limit.
        """
        control_runs = self._in_flight.control_runs
        cut: list[InFlightBatch] = []
        if self._request.acquire_mode is AcquireMode.RECORD_LIMIT:
            acquired_last_offset = min(wanted_last_offset, last_offset)
            cut.append(self._new_batch(base_offset, acquired_last_offset, last_offset))
            self.ranges.append((first_offset, acquired_last_offset, 1))
        else:
            batch_size = self._request.batch_size
            for end in piece_ends(
                control_runs, self._producer_batches, first_offset, last_offset, batch_size
            ):
                cut.append(self._new_batch(base_offset, end, end))
                self.ranges.append((first_offset, end, 1))
                base_offset = first_offset = end + 1
        self.batches += cut
        return cut

    def _new_batch(self, base_offset: int, acquired_last_offset: int, last_offset: int) -> InFlightBatch:
        """Acquired up to one offset, and available behind it."""
        owner, now_ms = self._request.member_id, self._request.now_ms
        runs = [
            InFlightRun(
                base_offset, acquired_last_offset, ACQUIRED, 1, owner, self._deadline_ms, None, now_ms
            )
        ]
        if acquired_last_offset < last_offset:
            runs.append(InFlightRun(acquired_last_offset + 1, last_offset, AVAILABLE, 0))
        return InFlightBatch(base_offset, last_offset, runs)

    def _pass_hole(self, first_offset: int) -> int:
        """Skips compacted records behind the SPEO; returns the first offset that was found.

        They are archived without a record of their own: the next record that is written fills them in.
        """
        in_flight = self._in_flight
        base_offset = self._producer_batches[first_reaching(self._producer_batches, first_offset)][0]
        if base_offset <= first_offset:
            return first_offset
        last_offset = in_flight.control_runs.previous_data_offset(base_offset - 1)
        hole = InFlightRun(in_flight.speo, last_offset, ARCHIVED, 0)
        in_flight.append(InFlightBatch(in_flight.speo, last_offset, [hole]))
        in_flight.advance()
        return base_offset
