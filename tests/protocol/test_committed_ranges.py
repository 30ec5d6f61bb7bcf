"""Offsets that are committed individually: the examples of the proposal, and a comparison with a set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange

offsets = st.integers(0, 60)
range_lists = st.lists(st.tuples(offsets, offsets), max_size=30)


State = tuple[int, list[tuple[int, int]]]
"""The stable offset, and the ranges beyond it."""


def state_of(ranges: CommittedRanges) -> State:
    return ranges.stable_offset, [(one.first_offset, one.last_offset) for one in ranges]


def of_set(stable_offset: int, committed: set[int]) -> State:
    """The same state from single offsets."""
    while stable_offset + 1 in committed:
        stable_offset += 1
    ranges: list[tuple[int, int]] = []
    for offset in sorted(one for one in committed if one > stable_offset):
        if ranges and ranges[-1][1] + 1 == offset:
            ranges[-1] = (ranges[-1][0], offset)
        else:
            ranges.append((offset, offset))
    return stable_offset, ranges


NO_RANGE: list[tuple[int, int]] = []


def example() -> CommittedRanges:
    return CommittedRanges(42, [(45, 47), (50, 50)])


def test_a_commit_that_fills_a_gap_joins_the_ranges_beside_it() -> None:
    ranges = example()
    assert ranges.commit([(48, 49)]) == (42, [(45, 50)], [(45, 47), (50, 50)])
    assert state_of(ranges) == (42, [(45, 50)])


def test_a_commit_behind_the_stable_offset_moves_it_over_the_next_range() -> None:
    ranges = example()
    assert ranges.commit([(43, 44)]) == (47, [], [(45, 47)])
    assert state_of(ranges) == (47, [(50, 50)])


@pytest.mark.parametrize("order", [[(48, 49), (43, 44)], [(43, 44), (48, 49)]])
def test_both_commits_in_either_order_leave_no_range(order: list[tuple[int, int]]) -> None:
    ranges = example()
    for one in order:
        ranges.commit([one])
    assert state_of(ranges) == (50, [])


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        ([(46, 48)], (42, [(45, 48), (50, 50)])),  # overlaps one
        ([(45, 47)], (42, [(45, 47), (50, 50)])),  # repeats one
        ([(30, 43)], (43, [(45, 47), (50, 50)])),  # begins below the stable offset
        ([(30, 40)], (42, [(45, 47), (50, 50)])),  # lies below the stable offset
        ([(44, 60)], (42, [(44, 60)])),  # covers both
        ([(43, 60)], (60, NO_RANGE)),
        ([(49, 48)], (42, [(45, 47), (50, 50)])),  # is empty
        ([(60, 20)], (42, [(45, 47), (50, 50)])),  # is inverted
        ([(52, 52), (52, 55), (54, 54)], (42, [(45, 47), (50, 50), (52, 55)])),  # repeats itself
    ],
)
def test_a_commit_may_name_offsets_in_any_way(committed: list[tuple[int, int]], expected: State) -> None:
    ranges = example()
    ranges.commit(committed)
    assert state_of(ranges) == expected


def test_a_commit_of_committed_offsets_changes_nothing() -> None:
    assert example().plan([(45, 46), (47, 47), (50, 50), (0, 42)]) == (42, [], [])


def test_a_plan_changes_nothing() -> None:
    ranges = example()
    ranges.plan([(43, 60)])
    assert state_of(ranges) == (42, [(45, 47), (50, 50)])


def test_without_a_committed_offset_the_first_range_may_begin_at_0() -> None:
    assert state_of(CommittedRanges(ranges=[(0, 3), (5, 6)])) == (3, [(5, 6)])


def test_a_reset_removes_all_ranges() -> None:
    ranges = example()
    ranges.reset(10)
    assert state_of(ranges) == (10, [])


def test_a_range_is_taken_back_unless_it_is_part_of_another() -> None:
    ranges = example()
    ranges.commit([(48, 48)])
    ranges.remove(OffsetRange(45, 47))
    ranges.remove(OffsetRange(50, 50))
    ranges.remove(OffsetRange(90, 99))
    assert state_of(ranges) == (42, [(45, 48)])


@given(st.integers(-1, 20), st.lists(range_lists, max_size=6))
def test_the_state_is_that_of_a_set_of_offsets(
    stable_offset: int, commits: list[list[tuple[int, int]]]
) -> None:
    ranges = CommittedRanges(stable_offset)
    committed: set[int] = set()
    logged: set[OffsetRange] = set()
    for commit in commits:
        change = ranges.commit(commit)
        committed |= {offset for first, last in commit for offset in range(first, last + 1)}
        assert state_of(ranges) == of_set(stable_offset, committed)
        assert logged >= set(change.removed)
        assert not logged & set(change.added)
        logged = (logged - set(change.removed)) | set(change.added)
        assert logged == set(ranges)
    for offset in range(70):
        assert (offset in ranges) == (offset <= stable_offset or offset in committed)
        free = next(one for one in range(offset, 99) if one not in committed and one > stable_offset)
        assert ranges.first_uncommitted(offset) == free
