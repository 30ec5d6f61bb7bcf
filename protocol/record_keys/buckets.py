"""Buckets of hashes: a summary of the keys in a batch that fits in one number. Pure.

All hashes are divided evenly into `BUCKET_COUNT` buckets. A set of buckets is a number with one bit for each.
If the set of a batch has no bucket in common with the set of a hash range, then no record of the batch is in
the range. The reverse is not certain, because a range may begin or end inside a bucket.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.record_keys.hash_range import HashRange, hash_of_offset
from barnabas.protocol.record_keys.shapes import NO_KEY, KeyHashes

BUCKET_COUNT: Final = 64
ALL_BUCKETS: Final = (1 << BUCKET_COUNT) - 1
NO_BUCKETS: Final = 0

_HASH_BITS: Final = 31
_SHIFT: Final = _HASH_BITS - (BUCKET_COUNT.bit_length() - 1)


def buckets_of_range(hashes: HashRange) -> int:
    """The buckets with hashes of the range."""
    first, last = hashes.first_hash >> _SHIFT, hashes.last_hash >> _SHIFT
    return (1 << last + 1) - (1 << first)


def buckets_of_records(found: KeyHashes, base_offset: int) -> int:
    """The buckets of a batch's records. Those without a key go by their offsets."""
    buckets = NO_BUCKETS
    for offset_delta, hashed in zip(found.offset_deltas, found.hashes, strict=True):
        place = hash_of_offset(base_offset + offset_delta) if hashed == NO_KEY else hashed
        buckets |= 1 << (place >> _SHIFT)
    return buckets
