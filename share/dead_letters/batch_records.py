"""The records in batches that were read from a log."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.records import Record, iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.reading.log_slice import BatchSlice


def batch_records(
    read: BatchSlice, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Record]:
    """The data records; a batch that is malformed, or inflates to more, ends early."""
    for span in read.batches:
        batch = read.data[span.start : span.end]
        if not read_header(batch).is_control:
            try:
                yield from iterate_records(batch, decompressed_bytes_max=decompressed_bytes_max)
            except RecordFormatError:
                continue
