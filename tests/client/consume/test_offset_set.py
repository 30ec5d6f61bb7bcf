"""Sets of offsets, compared with sets of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consume.offset_set import OffsetSet

OFFSETS = st.integers(0, 40)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "take"]), OFFSETS, OFFSETS), max_size=60)


def offsets_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


@given(STEPS)
def test_a_set_of_offsets_equals_a_set_of_numbers(steps: list[tuple[str, int, int]]) -> None:
    tested, model = OffsetSet(), set[int]()
    for step, first, last in steps:
        named = set(range(first, last + 1))
        if step == "add":
            tested.add(first, last)
            model |= named
        else:
            taken = tested.take(first, last)
            assert offsets_of(list(taken)) == model & named
            model -= named
        ranges = list(tested)
        assert offsets_of(list(ranges)) == model
        assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges)), "as few as possible"
        assert all((offset in tested) == (offset in model) for offset in range(42))
        assert len(tested) == len(ranges)


def test_everything_can_be_taken_at_once() -> None:
    tested = OffsetSet([(0, 3), (7, 7)])
    assert tested.take() == [(0, 3), (7, 7)]
    assert not len(tested)
    assert tested.take() == []
