"""The buckets of the keys in a stored batch, as far as they are known at a small price. Pure."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.record_keys import key_hashes
from barnabas.protocol.record_keys.buckets import ALL_BUCKETS, NO_BUCKETS, buckets_of_records
from barnabas.protocol.varint import Buffer, RecordFormatError

HASHED_RECORDS_MAX: Final = 1_000
"""The most records of a batch whose keys are hashed, which takes 0.2 ms. Larger batches have nearly always
keys in every bucket."""
INFLATED_BYTES_MAX: Final = 128 * 1024
"""The largest uncompressed size of a compressed batch whose keys are hashed: gzip needs 0.4 ms for it, with
the hashes."""


def buckets_of_batch(batch: Buffer) -> int:
    """The buckets of a whole batch. All of them if the batch is beyond the bounds, or if it is malformed: its
    reader must get it. None for control records, which have no keys.
    """
    header = read_header(batch)
    if header.is_control:
        return NO_BUCKETS
    if header.record_count > HASHED_RECORDS_MAX:
        return ALL_BUCKETS
    try:
        body = batch_body(batch, header, decompressed_bytes_max=INFLATED_BYTES_MAX)
        return buckets_of_records(key_hashes(body, header.record_count), header.base_offset)
    except RecordFormatError:
        return ALL_BUCKETS
