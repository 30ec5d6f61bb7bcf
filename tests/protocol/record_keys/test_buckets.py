"""Buckets of hashes: a batch whose buckets a range does not touch has no record in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_keys import HASH_MAX, NO_KEY, KeyHashes
from barnabas.protocol.record_keys.buckets import (
    ALL_BUCKETS,
    BUCKET_COUNT,
    NO_BUCKETS,
    buckets_of_range,
    buckets_of_records,
)
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges, hash_of_offset

HASHES = st.integers(0, HASH_MAX)


def test_all_hashes_have_all_buckets() -> None:
    assert buckets_of_range(ALL_HASHES) == ALL_BUCKETS


def test_a_range_of_one_hash_has_one_bucket() -> None:
    assert buckets_of_range(HashRange(HASH_MAX, HASH_MAX)) == 1 << BUCKET_COUNT - 1
    assert buckets_of_range(HashRange(0, 0)) == 1


@pytest.mark.parametrize("count", [2, 4, 8, 64])
def test_even_ranges_have_buckets_of_their_own(count: int) -> None:
    found = [buckets_of_range(one) for one in even_ranges(count)]
    assert sum(found) == ALL_BUCKETS
    assert all(one.bit_count() == BUCKET_COUNT // count for one in found)


@given(st.lists(HASHES | st.just(NO_KEY), max_size=20), HASHES, HASHES, st.integers(0, 2**40))
def test_a_batch_with_a_record_in_the_range_has_a_bucket_of_it(
    hashes: list[int], one: int, other: int, base_offset: int
) -> None:
    wanted = HashRange(min(one, other), max(one, other))
    found = buckets_of_records(KeyHashes(list(range(len(hashes))), hashes), base_offset)
    if any(wanted.has_record(hashed, base_offset + delta) for delta, hashed in enumerate(hashes)):
        assert found & buckets_of_range(wanted)


def test_records_without_a_key_go_by_their_offsets() -> None:
    place = hash_of_offset(107)
    assert buckets_of_records(KeyHashes([7], [NO_KEY]), 100) == buckets_of_range(HashRange(place, place))


def test_no_records_have_no_buckets() -> None:
    assert buckets_of_records(KeyHashes([], []), 5) == NO_BUCKETS
