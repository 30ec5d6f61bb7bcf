"""Limits a task's rate: rows are handed on in slices, each at its time.

The bound holds from the first row on: an unused allowance is not saved up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from barnabas.pipeline.columnar import RecordBatch

SLICES_PER_SECOND: Final = 10
SLICE_RECORDS_MAX: Final = 10_000

_PAYLOAD_COLUMNS: Final = ("key", "value")


@dataclass(frozen=True, slots=True)
class Throttle:
    """The bounds of the rate; None for no bound."""

    records_per_second: float | None
    bytes_per_second: float | None

    def seconds_for(self, record_count: int, size_bytes: int) -> float:
        """The least time that this may take."""
        seconds = 0.0
        if self.records_per_second is not None:
            seconds = record_count / self.records_per_second
        if self.bytes_per_second is not None:
            seconds = max(seconds, size_bytes / self.bytes_per_second)
        return seconds

    @property
    def slice_records(self) -> int:
        """The number of records of a slice."""
        if self.records_per_second is None:
            return SLICE_RECORDS_MAX
        return max(1, min(SLICE_RECORDS_MAX, int(self.records_per_second / SLICES_PER_SECOND)))

    def throttled(
        self,
        batches: Iterator[RecordBatch],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[RecordBatch]:
        """The same rows, not faster than the bounds; waits after the last ones, too."""
        due = clock()
        for batch in batches:
            for first in range(0, batch.num_rows, self.slice_records):
                part = batch.slice(first, self.slice_records)
                due = max(due, clock()) + self.seconds_for(part.num_rows, payload_bytes(part))
                yield part
                sleep(max(0.0, due - clock()))


def payload_bytes(batch: RecordBatch) -> int:
    """The size of the keys and values."""
    pc: Any = import_module("pyarrow.compute")

    return sum(
        int(pc.sum(pc.binary_length(batch.column(name))).as_py() or 0)
        for name in _PAYLOAD_COLUMNS
        if name in batch.schema.names
    )
