"""Filling the offset map from the dirty part of a log: what was appended since it was compacted last."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.record_spans import batch_body, record_spans
from barnabas.protocol.varint import Buffer
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.slices import SliceMeter, Work
from barnabas.storage.cleaner.sources import Source, position_of, read_batches
from barnabas.storage.filesystem import FileSystem


def fill_offset_map(
    filesystem: FileSystem,
    sources: Sequence[Source],
    first_dirty_offset: int,
    offsets: OffsetMap,
    *,
    slice_bytes: int,
) -> Work:
    """Takes in the keys from `first_dirty_offset` on, up to the end of the sources or until the map is full.

    One batch at least is taken in, however small the map, so that each pass gets further. Raises OSError,
    RecordFormatError.
    """
    meter = SliceMeter(slice_bytes)
    offsets.end_offset = first_dirty_offset
    for source in sources:
        position = position_of(filesystem, source, first_dirty_offset)
        with closing(filesystem.open(source.segment.log_path, create=False)) as file:
            for _, header, data in read_batches(file, source, position):
                if header.last_offset >= first_dirty_offset:
                    if offsets.is_full:
                        return
                    _take_in(offsets, header, data, first_dirty_offset)
                if meter.add(len(data), 1 + header.record_count):
                    yield meter.take()
        offsets.end_offset = source.end_offset
    yield meter.take()


def _take_in(offsets: OffsetMap, header: BatchHeader, data: Buffer, first_dirty_offset: int) -> None:
    """One batch's keys. What belongs to a transaction is passed over: it may have been aborted."""
    if not header.is_control and not header.is_transactional:
        for span in record_spans(batch_body(data, header), header.record_count):
            offset = header.base_offset + span.offset_delta
            if span.key is not None and offset >= first_dirty_offset:
                offsets.put(span.key, offset)
    offsets.end_offset = header.last_offset + 1
