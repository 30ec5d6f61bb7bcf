"""The locks that members hold now, for metrics. Nothing is changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.share.partition.in_flight import InFlight
from barnabas.share.partition.in_flight_batch import ACQUIRED


class HeldLock(NamedTuple):
    """The locks of neighbouring records of one member."""

    member_id: str
    record_count: int
    acquired_ms: int
    """Monotonic. A renewal leaves it."""


def held_locks(in_flight: InFlight) -> Iterator[HeldLock]:
    """In the order of offsets. The share-partition must not change before the last one is taken."""
    if in_flight.deadline_from_ms is None:
        return  # without a deadline there is no lock
    for batch in in_flight.batches:
        for run in batch.runs:
            if run.state is ACQUIRED and run.owner is not None:
                record_count = in_flight.control_runs.data_count(run.first_offset, run.last_offset)
                yield HeldLock(run.owner, record_count, run.acquired_ms)
