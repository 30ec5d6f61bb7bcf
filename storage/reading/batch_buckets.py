"""The buckets of the keys in a stored batch, as far as they are known at a small price. Pure."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.batch_keys import keys_of_batch
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.record_keys.buckets import ALL_BUCKETS, buckets_of_records
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
    try:
        keys = keys_of_batch(
            batch, header, records_max=HASHED_RECORDS_MAX, inflated_bytes_max=INFLATED_BYTES_MAX
        )
    except RecordFormatError:
        return ALL_BUCKETS
    return ALL_BUCKETS if keys is None else buckets_of_records(keys, header.base_offset)
