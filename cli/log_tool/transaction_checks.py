"""Checks a segment's transaction index against its batches while the log is read.

An entry names a transaction that an abort marker in the segment ended. The earlier batches show where a
transaction begins, unless its beginning was deleted, compacted or damaged.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.segments import Indexes
from barnabas.cli.log_tool.verification import SegmentPlace
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.transaction_index import ENTRY_BYTES, AbortedTransaction, TransactionIndex
from barnabas.storage.segments.segment import TRANSACTION_INDEX_SUFFIX
from barnabas.storage.segments.segment_scan import ScannedBatch


class TransactionEntries:
    """The transaction index: an entry for each abort marker that ended something, and for nothing else."""

    def __init__(self, place: SegmentPlace, indexes: Indexes) -> None:
        self._place = place
        self._data = indexes.transactions
        self._index: TransactionIndex | None = None
        self._entries: dict[int, AbortedTransaction] = {}
        """By the offset of the marker; an entry is removed when its marker is found."""
        try:
            self._index = TransactionIndex(self._data)
        except RecordFormatError:
            return
        self._entries = {entry.last_offset: entry for entry in self._index.entries_from(0)}

    def check(self, batch: ScannedBatch) -> Iterator[Finding]:
        """The next good batch. Raises RecordFormatError for a marker that cannot be read."""
        _, header, data = batch
        if header.producer_id < 0 or not header.is_transactional:
            return
        end = read_marker_batch(data, header) if header.is_control else None
        aborted = self._place.log.producers.replay(header, end)
        if end is None or end.commit:
            return
        entry = self._entries.pop(header.base_offset, None)
        if aborted is not None:
            yield from self._compare(entry, aborted)

    def finish(self) -> Iterator[Finding]:
        """The end of the segment."""
        if self._index is None:
            yield self._finding(None, "its version is unknown")
        elif len(self._data) % ENTRY_BYTES and self._place.is_settled(self._place.log.next_offset - 1):
            yield self._finding(None, f"its {len(self._data)} bytes are not entries of {ENTRY_BYTES} bytes")
        elif not self._index.is_sane():
            yield self._finding(None, "its entries are impossible, or aren't ascending")
        for entry in self._entries.values():
            if not self._place.log.had_damage:
                yield self._finding(entry.last_offset, "its entry names a marker that isn't there")

    def _compare(self, entry: AbortedTransaction | None, aborted: AbortedTransaction) -> Iterator[Finding]:
        producer_id, first_offset, last_offset, _ = aborted
        if entry is None:
            if self._index is not None and self._place.is_settled(last_offset):
                message = f"there is no entry for the transaction of producer {producer_id} aborted there"
                yield self._finding(last_offset, message)
        elif entry.producer_id != producer_id:
            message = f"its entry names the producer {entry.producer_id}, the marker {producer_id}"
            yield self._finding(last_offset, message)
        elif entry.first_offset > first_offset:
            message = f"its entry begins at {entry.first_offset}, the transaction at {first_offset}"
            yield self._finding(last_offset, message)

    def _finding(self, offset: int | None, message: str) -> Finding:
        return self._place.in_index(TRANSACTION_INDEX_SUFFIX, offset, message)
