"""Ranges of keys' hashes, by which the members of a consumer group share a partition. Pure."""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

from barnabas.protocol.record_keys import HASH_MAX, NO_KEY, key_hash

_OFFSET_BYTES: Final = 8


class HashRange(NamedTuple):
    """Hashes of keys; both ends are inclusive."""

    first_hash: int
    last_hash: int

    def overlaps(self, other: HashRange) -> bool:
        return self.first_hash <= other.last_hash and other.first_hash <= self.last_hash

    def has_record(self, hashed: int, offset: int) -> bool:
        """Whether a record belongs to the range. `hashed` is the hash of its key, or NO_KEY: such records
        are spread by their offsets.
        """
        place = hash_of_offset(offset) if hashed == NO_KEY else hashed
        return self.first_hash <= place <= self.last_hash


ALL_HASHES: Final = HashRange(0, HASH_MAX)


def hash_of_offset(offset: int) -> int:
    """The place of a record without a key. Neighbouring offsets lie far from each other."""
    return key_hash(offset.to_bytes(_OFFSET_BYTES, "big"))


def even_ranges(count: int) -> list[HashRange]:
    """All hashes in this number of ranges, ascending. Their sizes differ by one hash at most."""
    size = HASH_MAX + 1
    bounds = [size * index // count for index in range(count + 1)]
    return [HashRange(first, after - 1) for first, after in itertools.pairwise(bounds)]
