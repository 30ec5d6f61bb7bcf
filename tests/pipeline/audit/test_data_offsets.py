"""Counting records between control offsets, against counting them one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.audit import data_offsets
from barnabas.pipeline.audit.data_offsets import DataOffsets, offset_count, pack_runs

STRETCHES = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=5), max_size=6
)
QUESTIONS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30)), max_size=12)


def growing(stretches: list[list[tuple[int, int]]]) -> Iterator[tuple[DataOffsets, set[int]]]:
    """Stretches of (records before a run, offsets in it): all that is known after each one, and its control
    offsets.
    """
    offsets, control, at = DataOffsets(), set[int](), 0
    for stretch in stretches:
        runs = array("q")
        for gap, size in stretch:
            runs.extend((at + gap, at + gap + size - 1))
            control.update(range(at + gap, at + gap + size))
            at += gap + size
        offsets.add(pack_runs(runs), offset_count(runs), runs[0])
        yield offsets, control


def known(stretches: list[list[tuple[int, int]]]) -> tuple[DataOffsets, set[int]]:
    """All that is known after the last stretch."""
    return [(DataOffsets(), set[int]()), *growing(stretches)][-1]


@given(STRETCHES, QUESTIONS)
def test_ranges_are_counted_without_control_offsets(
    stretches: list[list[tuple[int, int]]], questions: list[tuple[int, int]]
) -> None:
    offsets, control = known(stretches)
    firsts = [first for first, _ in questions]
    lasts = [first + size - 1 for first, size in questions]
    expected = [
        sum(offset not in control for offset in range(first, last + 1))
        for first, last in zip(firsts, lasts, strict=True)
    ]
    assert [offsets.count(first, last) for first, last in zip(firsts, lasts, strict=True)] == expected
    assert list(offsets.count_each(firsts, lasts)) == expected


@given(STRETCHES, QUESTIONS)
def test_counting_goes_on_while_the_log_grows(
    stretches: list[list[tuple[int, int]]], questions: list[tuple[int, int]]
) -> None:
    for offsets, control in growing(stretches):
        for first, size in questions:
            expected = sum(offset not in control for offset in range(first, first + size))
            assert offsets.count(first, first + size - 1) == expected


def test_dropped_stretches_are_counted_by_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_offsets, "PACKED_BYTES_MAX", 1)
    offsets, _ = known([[(5, 5)], [(5, 5)]])
    assert offsets.count(0, 9) == 10
    assert offsets.count(10, 19) == 5


def test_an_empty_range_holds_nothing() -> None:
    assert DataOffsets().count(5, 4) == 0
    assert DataOffsets().count(5, 9) == 5
