"""Ranges of hashes: even, disjoint, and complete."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_keys import HASH_MAX, NO_KEY
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges


@given(st.integers(1, 200))
def test_even_ranges_cover_all_hashes_once(count: int) -> None:
    ranges = even_ranges(count)
    assert (ranges[0].first_hash, ranges[-1].last_hash) == (0, HASH_MAX)
    assert all(one.last_hash + 1 == after.first_hash for one, after in itertools.pairwise(ranges))
    sizes = {one.last_hash - one.first_hash for one in ranges}
    assert max(sizes) - min(sizes) <= 1


def test_one_range_is_everything() -> None:
    assert even_ranges(1) == [ALL_HASHES]


@pytest.mark.parametrize(
    ("other", "expected"), [((0, 9), False), ((0, 10), True), ((20, 30), True), ((21, 30), False)]
)
def test_ranges_overlap_at_a_common_hash(other: tuple[int, int], expected: bool) -> None:
    assert HashRange(10, 20).overlaps(HashRange(*other)) is expected
    assert HashRange(*other).overlaps(HashRange(10, 20)) is expected


def test_records_without_a_key_are_spread_by_their_offsets() -> None:
    ranges = even_ranges(4)
    counts = Counter(one for offset in range(4_000) for one in ranges if one.has_record(NO_KEY, offset))
    assert sum(counts.values()) == 4_000
    assert all(800 < counts[one] < 1_200 for one in ranges)


def test_a_record_belongs_to_the_range_of_its_key() -> None:
    assert HashRange(10, 20).has_record(20, offset=7)
    assert not HashRange(10, 20).has_record(21, offset=7)
