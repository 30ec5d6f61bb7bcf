"""New records of groups in which records are delayed, or have a time to live.

In such a group, the records that were read come in flight before they are selected: those of the present as
available ones, delayed ones with their due time, expired ones as archived ones or on their way to dead
letters, and batches without data for a member as archived ones. All but the first is recorded, so that a
restart does not have to look into the records again. Other groups acquire new records without this detour.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause, Due
from barnabas.share.partition.acquisition_builder import AcquireRequest
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import AVAILABLE, InFlightBatch, InFlightRun
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.locks import archive, archive_unheld
from barnabas.share.partition.producer_batches import ProducerBatches, piece_ends
from barnabas.share.partition.selection import Span


class TimedPart(NamedTuple):
    """Neighbouring records of a batch that may not be delivered now; both offsets are inclusive."""

    first_offset: int
    last_offset: int
    fate: Due | Cause
    """When they are due, if they are new; or the cause by which they are archived: EXPIRED, with a dead
    letter if the group has them, GAP or TRANSACTION_ABORTED."""


def put_in_flight(
    in_flight: InFlight, batches: Sequence[tuple[int, int]], batch_size: int
) -> list[InFlightBatch]:
    """The offsets from the SPEO to the end of the producer batches come in flight as available ones, in
    batches of about this size. Returns these.
    """
    new: list[InFlightBatch] = []
    if not batches or batches[-1][1] < in_flight.speo:
        return new
    bounds = batches
    if batches[0][1] < in_flight.speo:
        bounds = [batch for batch in batches if batch[1] >= in_flight.speo]
    first_offset = max(bounds[0][0], in_flight.speo)
    for end in piece_ends(in_flight.control_runs, bounds, first_offset, bounds[-1][1], batch_size):
        run = InFlightRun(in_flight.speo, end, AVAILABLE, 0)
        new.append(InFlightBatch(in_flight.speo, end, [run]))
        in_flight.append(new[-1])
    return new


def admit(
    in_flight: InFlight,
    changes: Decision,
    batches: Sequence[tuple[int, int]],
    timed: Sequence[TimedPart],
    batch_size: int,
    limits: ShareLimits,
) -> list[InFlightBatch]:
    """The records of these producer batches come in flight, as far as they are new, and the timed records of
    them, or of others in flight, change their state. `changes` has that, to be recorded. Returns the new
    in-flight batches.
    """
    first_new_offset = in_flight.speo
    new = put_in_flight(in_flight, batches, batch_size)
    if new:
        _archive_holes(in_flight, changes, batches, first_new_offset)
    for first_offset, last_offset, fate in timed:
        if isinstance(fate, Due):
            _delay(in_flight, changes, max(first_offset, first_new_offset), last_offset, fate)
        else:
            letter = limits.letter_place if fate is Cause.EXPIRED else None
            archive_unheld(in_flight, changes, first_offset, last_offset, fate, letter)
    for batch in new:
        for run in batch.runs:
            if run.state is AVAILABLE and not run.waits:
                in_flight.note_available(run.first_offset, run.last_offset)
    return new


def admit_read(
    in_flight: InFlight,
    gone: Decision,
    spans: Sequence[Span],
    batches: ProducerBatches,
    timed: Sequence[TimedPart],
    request: AcquireRequest,
) -> list[InFlightBatch]:
    """The new records come in flight before the selection, if the first of them was read."""
    first_offset = in_flight.control_runs.next_data_offset(in_flight.speo)
    new = batches if spans[-1][0] <= first_offset <= spans[-1][1] else ()
    return admit(in_flight, gone, new, timed, request.batch_size, request.limits)


def _archive_holes(
    in_flight: InFlight, changes: Decision, batches: Sequence[tuple[int, int]], first_new_offset: int
) -> None:
    """Archives new offsets between the batches, which compaction has emptied."""
    previous = first_new_offset - 1
    for base_offset, last_offset in batches:
        if last_offset < first_new_offset:
            continue
        first_offset = in_flight.control_runs.next_data_offset(previous + 1)
        if first_offset < base_offset:
            hole_end = in_flight.control_runs.previous_data_offset(base_offset - 1)
            archive(in_flight, changes, first_offset, hole_end, AVAILABLE, Cause.GAP)
        previous = last_offset


def _delay(in_flight: InFlight, changes: Decision, first_offset: int, last_offset: int, due: Due) -> None:
    """The new records of the range wait until then."""
    for _, run in in_flight.parts(
        first_offset, last_offset, lambda run: run.state is AVAILABLE and run.condition is None
    ):
        run.condition = due
        in_flight.note_delayed(run, due)
        changes.add_change(run.first_offset, run.last_offset, AVAILABLE, 0, Cause.NONE, None, due)
