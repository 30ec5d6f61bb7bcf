"""The records that filters select, and the filters that Spark still has to apply."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from barnabas.pipeline.filters import LEAST, MOST, Kept, take_filters

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


EXACT: list[tuple[Any, Kept]] = [
    (EqualTo(("topic",), "a"), Kept(topics=frozenset({"a"}))),
    (EqualNullSafe(("topic",), "a"), Kept(topics=frozenset({"a"}))),
    (In(("topic",), ("a", "b")), Kept(topics=frozenset({"a", "b"}))),
    (EqualTo(("partition",), 3), Kept(partitions=frozenset({3}))),
    (In(("partition",), (3, 4)), Kept(partitions=frozenset({3, 4}))),
    (GreaterThan(("partition",), 3), Kept(partition_range=(4, MOST))),
    (EqualTo(("offset",), 7), Kept(offset_range=(7, 7))),
    (EqualNullSafe(("offset",), 7), Kept(offset_range=(7, 7))),
    (GreaterThan(("offset",), 7), Kept(offset_range=(8, MOST))),
    (GreaterThanOrEqual(("offset",), 7), Kept(offset_range=(7, MOST))),
    (LessThan(("offset",), 7), Kept(offset_range=(LEAST, 6))),
    (LessThanOrEqual(("offset",), 7), Kept(offset_range=(LEAST, 7))),
    (EqualTo(("timestamp",), at(5000)), Kept(time_range_ms=(5, 5))),
    (EqualTo(("timestamp",), at(5500)), Kept(time_range_ms=(6, 5))),
    (GreaterThan(("timestamp",), at(5000)), Kept(time_range_ms=(6, MOST))),
    (GreaterThan(("timestamp",), at(5999)), Kept(time_range_ms=(6, MOST))),
    (GreaterThanOrEqual(("timestamp",), at(5000)), Kept(time_range_ms=(5, MOST))),
    (GreaterThanOrEqual(("timestamp",), at(5001)), Kept(time_range_ms=(6, MOST))),
    (LessThan(("timestamp",), at(5000)), Kept(time_range_ms=(LEAST, 4))),
    (LessThan(("timestamp",), at(5001)), Kept(time_range_ms=(LEAST, 5))),
    (LessThanOrEqual(("timestamp",), at(-1)), Kept(time_range_ms=(LEAST, -1))),
    (IsNotNull(("offset",)), Kept()),
]

HULLS: list[tuple[Any, Kept]] = [
    (In(("offset",), (9, 3, 5)), Kept(offset_range=(3, 9))),
    (In(("timestamp",), (at(9000), at(3000))), Kept(time_range_ms=(3, 9))),
]

LEFT: list[Any] = [
    EqualTo(("value",), b"x"),
    EqualTo(("offset", "inner"), 7),
    EqualTo(("offset",), None),
    EqualTo(("offset",), True),
    EqualTo(("topic",), 7),
    In(("topic",), ("a", None)),
    In(("offset",), ()),
    LessThan(("topic",), "m"),
    StringStartsWith(("topic",), "a"),
    IsNull(("offset",)),
    IsNotNull(("key",)),
    Not(EqualTo(("offset",), 7)),
    GreaterThan(("timestamp",), datetime(1970, 1, 1)),  # noqa: DTZ001  without a zone it's no moment
]


@pytest.mark.parametrize(("given", "kept"), EXACT, ids=[str(given)[:60] for given, _ in EXACT])
def test_a_filter_is_taken_exactly(given: Any, kept: Kept) -> None:
    assert take_filters(Kept(), [given]) == (kept, [])


@pytest.mark.parametrize(("given", "kept"), HULLS, ids=lambda one: str(one)[:60])
def test_a_filter_prunes_and_is_applied_by_spark_too(given: Any, kept: Kept) -> None:
    assert take_filters(Kept(), [given]) == (kept, [given])


@pytest.mark.parametrize("given", LEFT, ids=str)
def test_a_filter_is_left_to_spark(given: Any) -> None:
    assert take_filters(Kept(), [given]) == (Kept(), [given])


def test_filters_narrow_each_other() -> None:
    kept, _ = take_filters(
        Kept(),
        [
            GreaterThan(("offset",), 5),
            LessThan(("offset",), 9),
            In(("topic",), ("a", "b")),
            In(("topic",), ("b", "c")),
            In(("partition",), (1, 2, 3)),
            In(("partition",), (2, 3, 4)),
            LessThan(("partition",), 3),
        ],
    )
    assert kept.offset_range == (6, 8)
    assert kept.topics == frozenset({"b"})
    assert [number for number in range(9) if kept.has_partition("b", number)] == [2]
    assert not kept.has_partition("a", 2)


@pytest.mark.parametrize(
    "contradiction",
    [
        [GreaterThan(("offset",), 5), LessThan(("offset",), 6)],
        [GreaterThan(("timestamp",), at(5000)), LessThan(("timestamp",), at(6000))],
    ],
)
def test_filters_that_contradict_each_other_leave_no_partition(contradiction: list[Any]) -> None:
    kept, _ = take_filters(Kept(), contradiction)
    assert not kept.has_partition("t", 0)
