"""Batches whose records are all final, and that a delayed record before them keeps in flight.

A delayed record may hold the start offset for days, while any number of records behind it are delivered and
acknowledged. Their batches are joined, so that they take memory by the number of delayed records, and not by
the number of acknowledged ones. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.delivery_state import StateRange, is_final
from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import FinishedBatch, InFlightBatch


def join_finished(in_flight: InFlight, changes: Iterable[StateRange]) -> None:
    """Joins the batches that have become final by these changes with finished neighbours."""
    for change in changes:
        if is_final(change.state):
            offset = max(change.base_offset, in_flight.spso)
            while offset <= change.last_offset and offset < in_flight.speo:
                offset = _join_at(in_flight, offset)


def _join_at(in_flight: InFlight, offset: int) -> int:
    """Joins the batch that holds the offset with its neighbours, if it is finished. Returns the offset behind
    it.
    """
    batches = in_flight.batches
    index = in_flight.batch_index(offset)
    batch = batches[index]
    if not _is_finished(batch):
        return batch.last_offset + 1
    first, end = index, index + 1
    if index and isinstance(batches[index - 1], FinishedBatch):
        first = index - 1
    if end < len(batches) and isinstance(batches[end], FinishedBatch):
        end += 1
    whole = batches[first:end]
    joined = FinishedBatch(whole[0].base_offset, whole[-1].last_offset, whole[0].runs)
    for following in whole[1:]:
        seam = following.runs[0].first_offset
        joined.runs += following.runs
        joined.join(seam, seam)
    batches[first:end] = [joined]
    return joined.last_offset + 1


def _is_finished(batch: InFlightBatch) -> bool:
    return isinstance(batch, FinishedBatch) or all(
        is_final(run.state) and not run.pending for run in batch.runs
    )
