"""Fills the offset map from the dirty part of a log: the records since the last compaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_walk import record_spans
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.slices import SliceMeter, Work
from barnabas.storage.cleaner.sources import Source, position_of, read_batches
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.segments.segment_scan import ScannedBatch


def fill_offset_map(
    filesystem: FileSystem,
    sources: Sequence[Source],
    first_dirty_offset: int,
    offsets: OffsetMap,
    transactions: CleanedTransactions,
    *,
    slice_bytes: int,
) -> Work:
    """Adds the keys from `first_dirty_offset` on, up to the end of the sources or until the map is full.

    Records of aborted transactions are skipped. At least one batch is added, for a map of any size, so that
    each pass makes progress. Raises OSError, RecordFormatError.
    """
    meter = SliceMeter(slice_bytes)
    offsets.end_offset = first_dirty_offset
    for source in sources:
        position = position_of(filesystem, source, first_dirty_offset)
        with closing(filesystem.open(source.segment.log_path, create=False)) as file:
            for batch in read_batches(file, source, position):
                if batch.header.last_offset >= first_dirty_offset:
                    if offsets.is_full:
                        return
                    _take_in(offsets, transactions, batch, first_dirty_offset)
                if meter.add(len(batch.data), 1 + batch.header.record_count):
                    yield meter.take()
        offsets.end_offset = source.end_offset
    yield meter.take()


def _take_in(
    offsets: OffsetMap, transactions: CleanedTransactions, batch: ScannedBatch, first_dirty_offset: int
) -> None:
    """Adds the keys of one batch."""
    _, header, data = batch
    if header.is_control:
        if header.producer_id >= 0 and (end := read_marker_batch(data, header)) is not None:
            transactions.ends_nothing(header, end)
    elif not transactions.is_aborted(header):
        for span in record_spans(batch_body(data, header), header.record_count):
            offset = header.base_offset + span.offset_delta
            if span.key is not None and offset >= first_dirty_offset:
                offsets.put(span.key, offset)
    offsets.end_offset = header.last_offset + 1
