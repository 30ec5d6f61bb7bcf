"""The records that a query's filters select, and the filters that Spark still has to apply.

A source applies comparisons of `topic`, `partition`, `offset` and `timestamp` with a value: =, <=>, <, <=,
>, >= and `in`. It applies all of them exactly, except `in` on offset and timestamp: there it reads everything
from the smallest to the largest value. Spark applies the rest. Records have times in milliseconds, queries in
microseconds.

This module knows Spark's filters only by the names of their classes and fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1

_Filter = TypeVar("_Filter")
"""One of Spark's filters, which this module knows by the name of its class."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_PER_MS = 1000
_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp"})

Range = tuple[int, int]
"""Both ends inclusive; empty if the first is above the last."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The records that pass all filters."""

    topics: frozenset[str] | None = None
    """None for all topics."""
    partitions: frozenset[int] | None = None
    partition_range: Range = (LEAST, MOST)
    offset_range: Range = (LEAST, MOST)
    time_range_ms: Range = (LEAST, MOST)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether any record of the partition can pass."""
        return (
            (self.topics is None or topic in self.topics)
            and (self.partitions is None or partition in self.partitions)
            and self.partition_range[0] <= partition <= self.partition_range[1]
            and self.offset_range[0] <= self.offset_range[1]
            and self.time_range_ms[0] <= self.time_range_ms[1]
        )


def take_filters(kept: Kept, filters: Iterable[_Filter]) -> tuple[Kept, list[_Filter]]:
    """`kept` narrowed by the filters, and the filters that Spark still has to apply."""
    left: list[_Filter] = []
    for condition in filters:
        narrowed, is_exact = _take(kept, condition)
        kept = narrowed
        if not is_exact:
            left.append(condition)
    return kept, left


def _take(kept: Kept, condition: object) -> tuple[Kept, bool]:
    """`kept` narrowed by one filter, and whether that applies the filter exactly."""
    kind = str(type(condition).__name__)
    path: Sequence[str] = getattr(condition, "attribute", ())
    column = path[0] if len(path) == 1 else ""
    if kind == "IsNotNull":
        return kept, column in _NEVER_NULL
    take = _TAKERS.get(column)
    return (kept, False) if take is None else take(kept, kind, getattr(condition, "value", None))


def _take_topic(kept: Kept, kind: str, value: object) -> tuple[Kept, bool]:
    names = _values(kind, value, str)
    if names is None:
        return kept, False
    topics = frozenset(names)
    return replace(kept, topics=topics if kept.topics is None else kept.topics & topics), True


def _take_partition(kept: Kept, kind: str, value: object) -> tuple[Kept, bool]:
    numbers = _values(kind, value, int)
    if numbers is not None:
        partitions = frozenset(numbers)
        if kept.partitions is not None:
            partitions &= kept.partitions
        return replace(kept, partitions=partitions), True
    taken = _range(kind, value, _whole)
    if taken is None:
        return kept, False
    return replace(kept, partition_range=_both(kept.partition_range, taken)), True


def _take_offset(kept: Kept, kind: str, value: object) -> tuple[Kept, bool]:
    taken = _range(kind, value, _whole)
    if taken is None:
        return kept, False
    return replace(kept, offset_range=_both(kept.offset_range, taken)), kind != "In"


def _take_timestamp(kept: Kept, kind: str, value: object) -> tuple[Kept, bool]:
    taken = _range(kind, value, _microseconds)
    if taken is None:
        return kept, False
    first_ms = -(-taken[0] // _MICROSECONDS_PER_MS) if taken[0] != LEAST else LEAST
    last_ms = taken[1] // _MICROSECONDS_PER_MS if taken[1] != MOST else MOST
    return replace(kept, time_range_ms=_both(kept.time_range_ms, (first_ms, last_ms))), kind != "In"


_TAKERS: Final[dict[str, Callable[[Kept, str, object], tuple[Kept, bool]]]] = {
    "topic": _take_topic,
    "partition": _take_partition,
    "offset": _take_offset,
    "timestamp": _take_timestamp,
}


def _both(left: Range, right: Range) -> Range:
    return max(left[0], right[0]), min(left[1], right[1])


def _values(kind: str, value: object, wanted: type) -> list[Any] | None:
    """The values of an equality or `in`; None for any other filter, or values of other types."""
    if kind in ("EqualTo", "EqualNullSafe"):
        values: list[object] = [value]
    elif kind == "In" and isinstance(value, (list, tuple)):
        values = list(cast("Sequence[object]", value))
    else:
        return None
    return values if all(type(literal) is wanted for literal in values) else None


def _range(kind: str, value: object, number_of: Callable[[object], int | None]) -> Range | None:
    """The numbers that pass a comparison, for `in` from the least to the greatest; None for other values."""
    if kind == "In" and isinstance(value, (list, tuple)):
        numbers = [number_of(literal) for literal in cast("Sequence[object]", value)]
        known = [number for number in numbers if number is not None]
        return (min(known), max(known)) if known and len(known) == len(numbers) else None
    number = number_of(value)
    return None if number is None or kind not in _RANGES else _RANGES[kind](number)


_RANGES: Final[dict[str, Callable[[int], Range]]] = {
    "EqualTo": lambda number: (number, number),
    "EqualNullSafe": lambda number: (number, number),
    "GreaterThan": lambda number: (number + 1, MOST),
    "GreaterThanOrEqual": lambda number: (number, MOST),
    "LessThan": lambda number: (LEAST, number - 1),
    "LessThanOrEqual": lambda number: (LEAST, number),
}


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _microseconds(value: object) -> int | None:
    """Since 1970 in UTC; None for a value that is not a time with a zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND
