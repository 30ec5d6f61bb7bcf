"""The arithmetic of control records as holes, against counting by hand."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.format.control_runs import ControlRuns


def runs_of(*runs: tuple[int, int]) -> ControlRuns:
    control_runs = ControlRuns()
    for first, last in runs:
        control_runs.append(first, last)
    return control_runs


RUNS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=8)
"""Each run as (offsets skipped before it, length)."""


@given(RUNS, st.integers(0, 45), st.integers(0, 45), st.integers(1, 30))
def test_all_queries_agree_with_counting(
    runs: list[tuple[int, int]], first: int, last: int, count: int
) -> None:
    control_runs = ControlRuns()
    control: set[int] = set()
    offset = 0
    for skipped, length in runs:
        offset += skipped
        control_runs.append(offset, offset + length - 1)
        control |= set(range(offset, offset + length))
        offset += length
    data = [one for one in range(first, last + 1) if one not in control]
    assert control_runs.data_count(first, last) == len(data)
    pieces = control_runs.data_ranges(first, last)
    assert [one for low, high in pieces for one in range(low, high + 1)] == data
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(pieces))
    above = [one for one in range(first, 200) if one not in control]
    assert control_runs.next_data_offset(first) == above[0]
    assert control_runs.nth_data_offset(first, count) == above[count - 1]
    below = [one for one in range(-1, first + 1) if one not in control]
    assert control_runs.previous_data_offset(first) == below[-1]


@given(RUNS, st.integers(0, 45))
def test_dropping_leaves_the_other_runs_unchanged(runs: list[tuple[int, int]], start: int) -> None:
    control_runs = ControlRuns()
    control: list[tuple[int, int]] = []
    offset = 0
    for skipped, length in runs:
        offset += skipped
        control_runs.append(offset, offset + length - 1)
        control.append((offset, offset + length - 1))
        offset += length
    control_runs.drop_below(start)
    end = max(start, offset)
    offsets = {one for low, high in control for one in range(low, high + 1) if start <= one}
    for one in range(start, end):
        assert (control_runs.next_data_offset(one) != one) == (one in offsets)
    assert control_runs.data_count(start, end - 1) == end - start - len(offsets)
    data_offsets = [one for one in range(start, 150) if one not in offsets]
    for count in range(1, 61):
        assert control_runs.nth_data_offset(start, count) == data_offsets[count - 1]


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([], 0),
        ([(5, 5)], 1),
        ([(5, 6), (7, 9)], 1),
        ([(5, 6), (8, 9)], 2),
    ],
)
def test_runs_that_touch_are_one(runs: list[tuple[int, int]], count: int) -> None:
    assert len(runs_of(*runs)) == count


def test_runs_are_appended_in_ascending_order() -> None:
    control_runs = runs_of((5, 6))
    for base_offset, last_offset in ((6, 7), (1, 2), (9, 8)):
        with pytest.raises(AssertionError):
            control_runs.append(base_offset, last_offset)


def test_counts_stay_correct_after_old_runs_are_dropped() -> None:
    control_runs = runs_of((0, 1), (4, 5), (8, 9))
    control_runs.drop_below(5)
    assert len(control_runs) == 2, "a run that reaches over the start stays"
    control_runs.append(12, 12)
    assert control_runs.data_count(6, 13) == 5
    assert [control_runs.nth_data_offset(6, count) for count in (1, 2, 3, 4, 5)] == [6, 7, 10, 11, 13]
    control_runs.drop_below(6)
    assert [control_runs.nth_data_offset(6, count) for count in (1, 2, 3)] == [6, 7, 10]
    assert control_runs.data_count(6, 7) == 2


def test_a_thousand_runs_need_little_memory() -> None:
    control_runs = runs_of(*((10 * one, 10 * one + 1) for one in range(1_000)))
    arrays = [getattr(control_runs, name) for name in ("_first", "_last", "_before")]
    assert sum(sys.getsizeof(one) for one in arrays) < 30_000


def lazily(runs: list[tuple[int, int]], cuts: set[int]) -> ControlRuns:
    """Runs that are loaded by the stretches between the cuts; runs behind the last cut are known."""
    bounds = [0, *sorted(cuts)]

    def older(below: int) -> tuple[int, list[tuple[int, int]]] | None:
        start = max((bound for bound in bounds if bound < below), default=None)
        return None if start is None else (start, inside(start, below))

    def inside(start: int, end: int) -> list[tuple[int, int]]:
        return [
            (max(first, start), min(last, end - 1)) for first, last in runs if first < end and last >= start
        ]

    control_runs = ControlRuns(known_from=bounds[-1], older=older)
    for first, last in inside(bounds[-1], 10**6):
        control_runs.append(first, last)
    return control_runs


@given(RUNS, st.sets(st.integers(1, 45)), st.lists(st.tuples(st.integers(0, 45), st.integers(0, 45))))
def test_runs_that_are_loaded_late_count_like_known_ones(
    shape: list[tuple[int, int]], cuts: set[int], questions: list[tuple[int, int]]
) -> None:
    runs: list[tuple[int, int]] = []
    offset = 0
    for skipped, length in shape:
        offset += skipped + 1  # runs of a stretch never touch
        runs.append((offset, offset + length - 1))
        offset += length
    eager, late = runs_of(*runs), lazily(runs, cuts)
    for first, last in questions:
        assert late.previous_data_offset(first) == eager.previous_data_offset(first)
        assert late.next_data_offset(last) == eager.next_data_offset(last)
        assert late.data_count(first, last) == eager.data_count(first, last)
        assert late.data_ranges(first, last) == eager.data_ranges(first, last)
        assert late.nth_data_offset(last, first + 1) == eager.nth_data_offset(last, first + 1)
    assert bool(len(late)) or not len(eager)
    late.append(100, 103)
    eager.append(100, 103)
    assert late.data_count(0, 200) == eager.data_count(0, 200)


def test_queries_about_the_end_load_no_older_runs() -> None:
    control_runs = lazily([(2, 3), (12, 13), (22, 23)], {10, 20})
    assert control_runs.data_count(20, 29) == 8
    assert (control_runs.known_from, len(control_runs)) == (20, 2)
    assert control_runs.next_data_offset(12) == 14
    assert control_runs.known_from == 10


def test_a_stretch_of_control_offsets_over_many_segments_is_one_run() -> None:
    control_runs = lazily([(offset, offset) for offset in range(1, 2_001)], set(range(2, 2_001)))
    assert control_runs.previous_data_offset(2_000) == 0
    assert (control_runs.known_from, len(control_runs)) == (0, 1)


def test_older_runs_that_could_not_be_read_are_read_again() -> None:
    answers: list[tuple[int, list[tuple[int, int]]] | None] = [(0, [(3, 4)]), None]

    def older(below: int) -> tuple[int, list[tuple[int, int]]] | None:
        answer = answers.pop()
        if answer is None:
            raise OSError("the disk cannot read")
        return answer

    control_runs = ControlRuns(known_from=10, older=older)
    with pytest.raises(OSError, match="cannot read"):
        control_runs.data_count(0, 9)
    assert control_runs.data_count(0, 9) == 8


@given(st.sets(st.integers(0, 30)), st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True))
def test_ranges_with_a_control_offset_are_told_from_others(controls: set[int], bounds: list[int]) -> None:
    control_runs = ControlRuns()
    for offset in sorted(controls):
        control_runs.append(offset, offset)
    bounds = sorted(bounds)[: len(bounds) // 2 * 2]
    firsts, lasts = bounds[::2], bounds[1::2]
    named = {one for first, last in zip(firsts, lasts, strict=True) for one in range(first, last + 1)}
    assert control_runs.is_any_in(firsts, lasts) == bool(named & controls)
