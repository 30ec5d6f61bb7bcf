"""Arithmetic of offset ranges, against sets of offsets."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.share_source.ranges import (
    AcquiredRange,
    OffsetRange,
    cut_front,
    intersect,
    join_acquired,
    offset_count,
    partition_acquired,
    subtract,
    union,
)


@st.composite
def ranges(draw: st.DrawFn) -> list[OffsetRange]:
    """Ascending, disjoint ranges among the first hundred offsets."""
    offsets = draw(st.sets(st.integers(0, 99)))
    return union(OffsetRange(offset, offset) for offset in offsets)


@st.composite
def acquired(draw: st.DrawFn) -> list[AcquiredRange]:
    """Disjoint ranges, cut in any way, with any delivery counts."""
    found: list[AcquiredRange] = []
    for first, last in draw(ranges()):
        cut = draw(st.integers(first, last))
        found.append(AcquiredRange(first, cut, draw(st.integers(1, 2))))
        if cut < last:
            found.append(AcquiredRange(cut + 1, last, draw(st.integers(1, 2))))
    return found


def offsets(of: list[OffsetRange]) -> set[int]:
    return {offset for first, last in of for offset in range(first, last + 1)}


def deliveries(of: list[AcquiredRange]) -> set[tuple[int, int]]:
    return {(offset, count) for first, last, count in of for offset in range(first, last + 1)}


def is_ascending(of: list[OffsetRange]) -> bool:
    return all(one.first_offset <= one.last_offset for one in of) and all(
        one.last_offset < other.first_offset for one, other in pairwise(of)
    )


@given(ranges(), ranges())
def test_ranges_are_sets_of_offsets(one: list[OffsetRange], other: list[OffsetRange]) -> None:
    for found, expected in (
        (union(one, other), offsets(one) | offsets(other)),
        (subtract(one, other), offsets(one) - offsets(other)),
        (intersect(one, other), offsets(one) & offsets(other)),
    ):
        assert offsets(found) == expected
        assert is_ascending(found)
        assert offset_count(found) == len(expected)


@given(acquired(), ranges())
def test_every_piece_of_an_acquired_range_keeps_its_delivery_count(
    given_ranges: list[AcquiredRange], by: list[OffsetRange]
) -> None:
    outside, inside = partition_acquired(given_ranges, by)
    assert deliveries(outside) | deliveries(inside) == deliveries(given_ranges)
    assert {offset for offset, _ in deliveries(inside)} <= offsets(by)
    assert not {offset for offset, _ in deliveries(outside)} & offsets(by)


class Counted(Sequence[OffsetRange]):
    """Ranges that count how often one of them is looked at."""

    def __init__(self, found: Sequence[OffsetRange]) -> None:
        self._found = found
        self.look_count = 0

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> OffsetRange: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[OffsetRange]: ...
    def __getitem__(self, index: int | slice) -> OffsetRange | Sequence[OffsetRange]:
        self.look_count += len(range(len(self))[index]) if isinstance(index, slice) else 1
        return self._found[index]


@pytest.mark.parametrize("cut", [subtract, intersect, partition_acquired])
def test_many_ranges_are_cut_at_many_without_comparing_each_pair(cut: Callable[[Any, Any], object]) -> None:
    """A driver's loop does this between two heartbeats."""
    count = 1_000
    by = Counted([OffsetRange(2 * one, 2 * one) for one in range(count)])
    cut([AcquiredRange(2 * one, 2 * one + 1, 1) for one in range(count)], by)
    assert by.look_count <= 16 * count


@given(acquired(), st.integers(0, 120))
def test_a_front_has_a_bounded_number_of_offsets(given_ranges: list[AcquiredRange], count: int) -> None:
    front, rest = cut_front(given_ranges, count)
    assert offset_count(front) == min(count, offset_count(given_ranges))
    assert deliveries(front) | deliveries(rest) == deliveries(given_ranges)
    assert not front or not rest or front[-1].last_offset < rest[0].first_offset


@given(acquired())
def test_joining_loses_nothing(given_ranges: list[AcquiredRange]) -> None:
    joined = join_acquired(reversed(given_ranges))
    assert deliveries(joined) == deliveries(given_ranges)
    assert join_acquired(joined) == joined


@pytest.mark.parametrize(
    ("given_ranges", "joined"),
    [
        pytest.param([(0, 4, 1), (5, 9, 1)], [(0, 9, 1)], id="neighbours"),
        pytest.param([(5, 9, 1), (0, 4, 1)], [(0, 9, 1)], id="in any order"),
        pytest.param([(0, 4, 1), (5, 9, 2)], [(0, 4, 1), (5, 9, 2)], id="delivered more often"),
        pytest.param([(0, 4, 1), (6, 9, 1)], [(0, 4, 1), (6, 9, 1)], id="with a hole between"),
    ],
)
def test_only_neighbours_that_were_delivered_equally_often_are_joined(
    given_ranges: list[tuple[int, int, int]], joined: list[tuple[int, int, int]]
) -> None:
    assert join_acquired(AcquiredRange(*one) for one in given_ranges) == joined
