"""Changes of the batches that a restarted leader finds in flight, without a recorded delivery. Pure."""

from __future__ import annotations

from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import AVAILABLE, InFlightBatch, InFlightRun, UnreadBatch


def replace_read(in_flight: InFlight, batch: UnreadBatch, read: list[InFlightBatch]) -> None:
    """Replaces the part of a batch that was read: some of the available records, from the first one on.

    The batch keeps the archived records in front of them; the records behind them become another batch of
    the same kind.
    """
    base_offset, last_offset = read[0].base_offset, read[-1].last_offset
    index = batch.run_index(base_offset)
    put: list[InFlightBatch] = [*read]
    if last_offset < batch.last_offset:
        rest = InFlightRun(last_offset + 1, batch.last_offset, AVAILABLE, 0)
        put.append(UnreadBatch(last_offset + 1, batch.last_offset, [rest]))
    position = in_flight.batch_index(base_offset)
    assert in_flight.batches[position] is batch, (batch.base_offset, base_offset)
    if index:  # A decision may refer to the archived part.
        del batch.runs[index:]
        batch.last_offset = base_offset - 1
        put.insert(0, batch)
    in_flight.batches[position : position + 1] = put


def forget_unread(in_flight: InFlight) -> None:
    """Batches that were never read become like all others, for the order of keys reads them itin_flight."""
    in_flight.batches = [
        InFlightBatch(batch.base_offset, batch.last_offset, batch.runs)
        if isinstance(batch, UnreadBatch)
        else batch
        for batch in in_flight.batches
    ]


def take_out_of_unread(in_flight: InFlight, first_offset: int, last_offset: int) -> None:
    """The records of the range are not delivered by producer batches any more: their states may differ.

    An unread batch that holds some becomes several: the records before and behind the range stay unread.
    """
    first_offset = in_flight.boundary(first_offset)
    for batch, run in list(in_flight.runs_between(first_offset, last_offset)):
        if isinstance(batch, UnreadBatch) and run.state is AVAILABLE:
            position = in_flight.batch_index(batch.last_offset)
            in_flight.batches[position : position + 1] = _without_part(batch, first_offset, last_offset)


def _without_part(batch: UnreadBatch, first_offset: int, last_offset: int) -> list[InFlightBatch]:
    """The batch in parts, so that the records of the range are in a batch of their own."""
    run = batch.runs.pop()
    first_offset, last_offset = max(first_offset, run.first_offset), min(last_offset, run.last_offset)
    parts: list[InFlightBatch] = []
    if run.first_offset < first_offset:
        batch.runs.append(run)
        run = run.cut_behind(first_offset - 1)
    if batch.runs:  # A decision may refer to the archived part.
        batch.last_offset = first_offset - 1
        parts.append(batch)
    parts.append(InFlightBatch(first_offset, last_offset, [run]))
    if last_offset < run.last_offset:
        rest = run.cut_behind(last_offset)
        parts.append(UnreadBatch(rest.first_offset, rest.last_offset, [rest]))
    return parts
