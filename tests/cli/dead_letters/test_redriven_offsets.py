"""The pages of the journal: they are planned, and take effect when they are replayed."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.dead_letters.redriven_offsets import (
    PAGE_OFFSETS,
    JournalFormatError,
    JournalRecord,
    RedrivenOffsets,
)

TOPIC_ID = UUID(int=7)
KEY = b'{"topic_id": "00000000-0000-0000-0000-000000000007", "partition": 2, "first_offset": 5000}'
LETTERS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3 * PAGE_OFFSETS)), max_size=30)


def replayed(*batches: list[tuple[int, int]]) -> tuple[RedrivenOffsets, list[JournalRecord]]:
    """The offsets after these batches, and all records of the journal."""
    redriven, journal = RedrivenOffsets(TOPIC_ID), list[JournalRecord]()
    for batch in batches:
        for record in redriven.plan(batch):
            journal.append(record)
            redriven.replay(record)
    return redriven, journal


def test_a_page_is_a_record_that_people_can_read() -> None:
    _, (record,) = replayed([(2, 5_000), (2, 5_001), (2, 5_999)])
    assert record == (KEY, b'{"version": 1, "redriven": [[5000, 5001], [5999, 5999]]}')


def test_a_plan_changes_nothing() -> None:
    redriven, _ = replayed([(0, 1)])
    redriven.plan([(0, 2)])
    assert [redriven.has(0, offset) for offset in (0, 1, 2)] == [False, True, False]


@given(LETTERS, LETTERS)
def test_the_last_record_of_each_page_restores_all_letters(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    _, journal = replayed(first, second)
    restored = RedrivenOffsets(TOPIC_ID)
    for key, value in dict(journal).items():  # as compaction leaves them
        restored.replay(JournalRecord(key, value))
    everywhere = {(partition, offset) for partition in range(3) for offset in range(3 * PAGE_OFFSETS + 1)}
    assert {one for one in everywhere if restored.has(*one)} == {*first, *second}


def test_the_first_waiting_letter_may_be_pages_away() -> None:
    redriven, _ = replayed([(0, offset) for offset in range(5, 2 * PAGE_OFFSETS + 3)])
    assert redriven.first_waiting(0, 0) == 0
    assert redriven.first_waiting(0, 5) == 2 * PAGE_OFFSETS + 3
    assert redriven.first_waiting(1, 5) == 5


def test_pages_of_letters_that_are_gone_get_tombstones() -> None:
    redriven, journal = replayed([(0, 0), (0, PAGE_OFFSETS), (1, 0)])
    assert redriven.outdated({0: PAGE_OFFSETS - 1, 1: 0}) == []
    (tombstone,) = redriven.outdated({0: PAGE_OFFSETS, 1: 0})
    assert tombstone == JournalRecord(journal[0].key, None)
    redriven.replay(tombstone)
    assert not redriven.has(0, 0)
    assert redriven.has(0, PAGE_OFFSETS)


def test_pages_of_an_earlier_topic_count_no_more_and_get_tombstones() -> None:
    _, (record,) = replayed([(0, 3)])
    newer = RedrivenOffsets(UUID(int=8))
    newer.replay(record)
    assert not newer.has(0, 3)
    assert newer.outdated({0: 0}) == [JournalRecord(record.key, None)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (JournalRecord(b"k", b""), "the key b'k' is not that of a page"),
        (JournalRecord(b"[]", b""), "the key"),
        (JournalRecord(b'{"topic_id": 7, "partition": 0, "first_offset": 0}', b""), "the key"),
        (JournalRecord(KEY, b"v"), "the value b'v' is not that of a page"),
        (JournalRecord(KEY, b'{"version": 1, "redriven": [[5000]]}'), "the value"),
        (
            JournalRecord(KEY, b'{"version": 2, "redriven": []}'),
            "version 2, and this program knows version 1",
        ),
        (JournalRecord(KEY, b'{"version": 1, "redriven": [[4999, 5000]]}'), "outside of its page, 5000"),
    ],
)
def test_other_records_are_refused(record: JournalRecord, reason: str) -> None:
    with pytest.raises(JournalFormatError) as refused:
        RedrivenOffsets(TOPIC_ID).replay(record)
    assert reason in str(refused.value)


def test_the_largest_page_is_as_small_as_its_docstring_says() -> None:
    first = 10**18
    _, journal = replayed([(0, first + 2 * number) for number in range(PAGE_OFFSETS // 2)])
    (record,) = journal
    assert record.value is not None
    assert len(json.loads(record.value)["redriven"]) == PAGE_OFFSETS // 2
    assert len(record.value) < 22_500
