"""The results of a read of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class LogSlice(NamedTuple):
    """The records for a Fetch: pieces of the log in order, from the batch with the requested offset on.

    The last batch may be cut short. `first_offset` is the first batch's base offset, or the requested offset
    if nothing was read. `aborted` are (producer id, first offset) of aborted transactions, for readers of
    committed records: all transactions with batches here, and some more, because the offset index is sparse,
    as in Kafka.
    """

    buffers: list[memoryview]
    size_bytes: int
    first_offset: int
    aborted: Sequence[tuple[int, int]] = ()


class BatchSpan(NamedTuple):
    """A batch's offsets, both inclusive, and its position in the slice's `data`, `end` exclusive."""

    base_offset: int
    last_offset: int
    start: int
    end: int
    has_data: bool = True
    """Whether it has records of data: it is neither a control batch nor emptied by compaction."""


class BatchSlice(NamedTuple):
    """Whole batches, ascending, in `data`. Between them `data` may hold share state."""

    batches: list[BatchSpan]
    data: memoryview
    has_empty: bool = False
    """Whether some of the batches have no data."""

    def pieces(self, first: int = 0, count: int | None = None) -> list[memoryview]:
        """The bytes of `count` batches (or all) from number `first` on; adjoining batches are one piece."""
        spans = self.batches[first : None if count is None else first + count]
        if not spans:
            return []
        data, pieces = self.data, list[memoryview]()
        piece_start = piece_end = spans[0].start
        for span in spans:
            if span.start > piece_end:
                pieces.append(data[piece_start:piece_end])
                piece_start = span.start
            piece_end = span.end
        pieces.append(data[piece_start:piece_end])
        return pieces
