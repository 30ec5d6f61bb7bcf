"""The uncompressed body of a batch, which holds its records. `record_walk` reads the records in it."""

from __future__ import annotations

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, LargerThanBound, decompress
from barnabas.protocol.record_batch import HEADER_BYTES, BatchHeader
from barnabas.protocol.varint import Buffer, RecordFormatError

SMALL_RECORDS_MAX = 100
"""A batch with at most this many records is small: starting a thread costs as much as reading 100 records,
0.1 ms or more."""
SMALL_BYTES_MAX = 32 * 1024
"""A small batch is also at most this long, uncompressed: an ordinary producer's batch of 16 KiB fits
easily."""


def batch_body(
    batch: Buffer, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The uncompressed records of a whole batch; RecordFormatError if they cannot be decompressed."""
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return decompress(header.compression, body, bytes_max=decompressed_bytes_max)


def bounded_body(
    batch: Buffer, header: BatchHeader, *, records_max: int, inflated_bytes_max: int
) -> bytes | None:
    """The uncompressed records of a whole batch, for readers that give up at a bound.

    None if the batch has more records than `records_max`, or if it is compressed and inflates to more than
    `inflated_bytes_max`. RecordFormatError if it cannot be decompressed.
    """
    if header.record_count > records_max:
        return None
    try:
        body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
        return decompress(header.compression, body, bytes_max=inflated_bytes_max)
    except LargerThanBound:
        return None


def small_body(batch: Buffer, header: BatchHeader) -> bytes | None:
    """The uncompressed records of a small batch, which can be read without a thread.

    None if the batch is larger, or if it cannot be decompressed.
    """
    if header.record_count > SMALL_RECORDS_MAX or header.size_bytes > SMALL_BYTES_MAX:
        return None
    try:
        return batch_body(batch, header, decompressed_bytes_max=SMALL_BYTES_MAX)
    except RecordFormatError:
        return None
