"""Combination of newer and older batches: Kafka's own cases, the results of its class for random batches, and
the rule for each offset.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.delivery_state import Cause, LetterPlace
from barnabas.storage.format.state_batches import StateBatch, combine

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "combined_batches.json").read_text(encoding="utf-8")
)
"""The results of Kafka 4.4.0's combiner for random batches, in chains: each row continues the row before."""

B = StateBatch
LOW, HIGH = (1, 0), (2, 0)
"""Ranks: by delivery count."""


def one(first_offset: int, last_offset: int, rank: tuple[int, int] = LOW) -> list[StateBatch]:
    return [B(first_offset, last_offset, *rank)]


CASES: dict[str, tuple[list[StateBatch], list[StateBatch], int, list[StateBatch]]] = {
    "the start cuts older batches": (one(100, 130), [], 120, one(120, 130)),
    "the start cuts newer batches": ([], one(100, 130), 120, one(120, 130)),
    "nothing": ([], [], 120, []),
    "alike: the same": (one(100, 110), one(100, 110), -1, one(100, 110)),
    "alike: a beginning of it": (one(100, 110), one(100, 105), -1, one(100, 110)),
    "alike: longer": (one(100, 110), one(100, 115), -1, one(100, 115)),
    "alike: inside": (one(100, 110), one(105, 108), -1, one(100, 110)),
    "alike: an end of it": (one(100, 110), one(105, 110), -1, one(100, 110)),
    "alike: beyond the end": (one(100, 110), one(105, 115), -1, one(100, 115)),
    "alike: next to it": (one(100, 110), one(111, 115), -1, one(100, 115)),
    "unlike: next to it": (one(100, 110), one(111, 115, HIGH), -1, one(100, 110) + one(111, 115, HIGH)),
    "higher: the same": (one(100, 110), one(100, 110, HIGH), -1, one(100, 110, HIGH)),
    "lower: the same": (one(100, 110, HIGH), one(100, 110), -1, one(100, 110, HIGH)),
    "higher: a beginning": (one(100, 110), one(100, 105, HIGH), -1, one(100, 105, HIGH) + one(106, 110)),
    "lower: a beginning": (one(100, 110, HIGH), one(100, 105), -1, one(100, 110, HIGH)),
    "higher: longer": (one(100, 110), one(100, 115, HIGH), -1, one(100, 115, HIGH)),
    "lower: longer": (one(100, 110, HIGH), one(100, 115), -1, one(100, 110, HIGH) + one(111, 115)),
    "higher: inside": (
        one(100, 115),
        one(105, 110, HIGH),
        -1,
        one(100, 104) + one(105, 110, HIGH) + one(111, 115),
    ),
    "lower: inside": (one(100, 115, HIGH), one(105, 110), -1, one(100, 115, HIGH)),
    "higher: an end": (one(100, 110), one(105, 110, HIGH), -1, one(100, 104) + one(105, 110, HIGH)),
    "lower: an end": (one(100, 110, HIGH), one(105, 110), -1, one(100, 110, HIGH)),
    "higher: beyond the end": (one(100, 110), one(105, 115, HIGH), -1, one(100, 104) + one(105, 115, HIGH)),
    "lower: beyond the end": (one(100, 110, HIGH), one(105, 115), -1, one(100, 110, HIGH) + one(111, 115)),
    "new ones overlap and are alike": (
        one(100, 110) + one(121, 130),
        one(111, 119) + one(116, 123),
        -1,
        one(100, 130),
    ),
    "new ones overlap with ranks of their own": (
        one(100, 110),
        [B(101, 105, 1, 2), B(101, 115, 2, 2), B(101, 120, 1, 0)],
        -1,
        [B(100, 100, 1, 0), B(101, 115, 2, 2), B(116, 120, 1, 0)],
    ),
    "cut and overlapping": (
        [*one(100, 110), B(121, 130, 1, 2)],
        [*one(111, 119), B(116, 123, 1, 2)],
        116,
        [B(116, 130, 1, 2)],
    ),
    "several over one": (
        one(111, 120),
        [B(111, 113, 1, 2), B(114, 114, 2, 0), B(115, 119, 1, 4)],
        111,
        [B(111, 113, 1, 2), B(114, 114, 2, 0), B(115, 119, 1, 4), B(120, 120, 1, 0)],
    ),
}


@pytest.mark.parametrize(("so_far", "newer", "start_offset", "expected"), CASES.values(), ids=CASES)
def test_kafkas_cases_have_kafkas_results(
    so_far: list[StateBatch], newer: list[StateBatch], start_offset: int, expected: list[StateBatch]
) -> None:
    assert combine(so_far, newer, start_offset) == expected


def test_random_batches_have_kafkas_results() -> None:
    for row in RECORDED:
        so_far, newer, combined = (
            [B(*fields) for fields in row[name]] for name in ("so_far", "newer", "combined")
        )
        assert combine(so_far, newer, row["start_offset"]) == combined, row


def test_between_equal_ranks_the_newer_batch_wins_with_its_condition() -> None:
    older, newer = LetterPlace(Cause.REJECT), LetterPlace(Cause.REJECT, UUID(int=5), 1, 90)
    combined = combine([B(0, 9, 1, 3, older)], [B(4, 5, 1, 3, newer)], -1)
    assert combined == [B(0, 3, 1, 3, older), B(4, 5, 1, 3, newer), B(6, 9, 1, 3, older)]
    assert combine(combined, [B(0, 9, 1, 4)], -1) == [B(0, 9, 1, 4)]


def batch(first_offset: int, length: int, delivery_count: int, delivery_state: int) -> StateBatch:
    return B(first_offset, first_offset + length, delivery_count, delivery_state)


BATCHES = st.lists(
    st.builds(batch, st.integers(0, 30), st.integers(0, 8), st.integers(1, 3), st.sampled_from([0, 2, 3, 4])),
    max_size=5,
)


@given(BATCHES, BATCHES, st.integers(-1, 15))
def test_each_offset_has_the_highest_rank_of_its_batches(
    older: list[StateBatch], newer: list[StateBatch], start_offset: int
) -> None:
    so_far = combine([], older, -1)
    combined = combine(so_far, newer, start_offset)
    expected: dict[int, tuple[int, int]] = {}
    for batch in (*older, *newer):
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            expected[offset] = max(expected.get(offset, batch.rank), batch.rank)
    found = {
        offset: batch.rank
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert found == expected
    for one, next_ in pairwise(combined):
        assert one.last_offset < next_.first_offset
        assert one.last_offset + 1 < next_.first_offset or one.rank != next_.rank
