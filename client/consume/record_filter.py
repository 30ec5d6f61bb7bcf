"""Leaves out records that a member does not deliver, and notes offsets that hold no record. Pure.

A fetch that names a hash range may lack batches of other members. Then a gap between two batches tells
nothing; a gap inside a batch always means that no record is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import RecordFields


class RecordFilter:
    """For the batches of one fetch, in their order."""

    __slots__ = ("_is_complete", "_next_offset", "_progress")

    def __init__(self, progress: IndividualProgress, fetch_offset: int, *, is_complete: bool) -> None:
        """`is_complete`: the broker has left out no batch from `fetch_offset` on."""
        self._progress = progress
        self._next_offset = fetch_offset
        self._is_complete = is_complete

    @property
    def holder(self) -> IndividualProgress:
        """Knows which records the application processes."""
        return self._progress

    def begin_batch(self, header: BatchHeader) -> None:
        """Call it for each batch first."""
        if self._is_complete:
            self._progress.note_empty(self._next_offset, header.base_offset - 1)
        self._next_offset = max(header.last_offset + 1, self._next_offset)

    def skip(self, header: BatchHeader) -> None:
        """No consumer delivers this batch."""
        self._progress.note_empty(header.base_offset, header.last_offset)

    def select(self, header: BatchHeader, records: Iterable[RecordFields]) -> Iterator[RecordFields]:
        """The records of a batch that the member delivers."""
        progress = self._progress
        expected = header.base_offset
        for record in records:
            offset, _, key, _, _ = record
            if offset > expected:
                progress.note_empty(expected, offset - 1)
            expected = offset + 1
            if progress.wants(offset, key):
                yield record
        progress.note_empty(expected, header.last_offset)
