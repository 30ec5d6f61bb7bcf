"""The body of a batch, which holds its records, uncompressed. `record_walk` reads the records in it."""

from __future__ import annotations

from barnabas.protocol.compression import DECOMPRESSED_BYTES_MAX, decompress
from barnabas.protocol.record_batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader, Compression
from barnabas.protocol.varint import Buffer, RecordFormatError

SMALL_RECORDS_MAX = 100
"""A batch of no more records is small: a thread costs as much as 100 records take, 0.1 ms and more."""
SMALL_BYTES_MAX = 32 * 1024
"""So is one of no more bytes, unpacked: an ordinary producer's batch of 16 KiB is well within."""


def batch_body(
    batch: Buffer, header: BatchHeader, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The records of a whole batch, uncompressed; RecordFormatError if they cannot be unpacked."""
    codec = header.attributes & COMPRESSION_MASK
    if codec > Compression.ZSTD:
        raise RecordFormatError(f"The batch at {header.base_offset} has the unknown codec {codec}.")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    return decompress(Compression(codec), body, bytes_max=decompressed_bytes_max)


def small_body(batch: Buffer, header: BatchHeader) -> bytes | None:
    """The records, uncompressed, if there are so few that they can be looked into at once.

    None if there are more, or if they cannot be unpacked.
    """
    if header.record_count > SMALL_RECORDS_MAX or header.size_bytes > SMALL_BYTES_MAX:
        return None
    try:
        return batch_body(batch, header, decompressed_bytes_max=SMALL_BYTES_MAX)
    except RecordFormatError:
        return None
