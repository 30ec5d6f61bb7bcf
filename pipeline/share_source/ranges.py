"""Arithmetic of offset ranges: acquired, new and done ones. Pure.

A range has both ends inclusive. Lists of ranges are ascending and disjoint. Acquired ranges have a delivery
count, which all parts cut from them keep.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from barnabas.protocol.decode.acknowledgements import AckBatch


class OffsetRange(NamedTuple):
    """Offsets from first to last, both inclusive."""

    first_offset: int
    last_offset: int


class AcquiredRange(NamedTuple):
    """Offsets from first to last, both inclusive, each delivered for the `delivery_count`th time."""

    first_offset: int
    last_offset: int
    delivery_count: int


_AnyRange = TypeVar("_AnyRange", AcquiredRange, AckBatch)

_LAST_OFFSET: Final = attrgetter("last_offset")


def offset_count(ranges: Iterable[OffsetRange | AcquiredRange | AckBatch]) -> int:
    """The number of offsets; there may be fewer records, because the log may have holes."""
    return sum(offset_range.last_offset - offset_range.first_offset + 1 for offset_range in ranges)


def union(*groups: Iterable[OffsetRange | AcquiredRange]) -> list[OffsetRange]:
    """Every offset that is in any of the groups; neighbours become one range. Groups may be in any order."""
    merged: list[OffsetRange] = []
    for first, last, *_ in sorted(offset_range for group in groups for offset_range in group):
        if merged and first <= merged[-1].last_offset + 1:
            merged[-1] = OffsetRange(merged[-1].first_offset, max(merged[-1].last_offset, last))
        else:
            merged.append(OffsetRange(first, last))
    return merged


def subtract(ranges: Iterable[OffsetRange], taken: Sequence[OffsetRange]) -> list[OffsetRange]:
    """The offsets of `ranges` that are not in `taken`."""
    return [
        OffsetRange(first, last)
        for offset_range in ranges
        for first, last, is_inside in _pieces(offset_range.first_offset, offset_range.last_offset, taken)
        if not is_inside
    ]


def intersect(ranges: Iterable[OffsetRange], others: Sequence[OffsetRange]) -> list[OffsetRange]:
    """The offsets that are in both."""
    return [
        OffsetRange(first, last)
        for offset_range in ranges
        for first, last, is_inside in _pieces(offset_range.first_offset, offset_range.last_offset, others)
        if is_inside
    ]


def partition_acquired(
    acquired: Iterable[AcquiredRange], by: Sequence[OffsetRange]
) -> tuple[list[AcquiredRange], list[AcquiredRange]]:
    """The parts outside of `by`, and those inside."""
    outside: list[AcquiredRange] = []
    inside: list[AcquiredRange] = []
    for acquired_range in acquired:
        for first, last, is_inside in _pieces(acquired_range.first_offset, acquired_range.last_offset, by):
            (inside if is_inside else outside).append(
                AcquiredRange(first, last, acquired_range.delivery_count)
            )
    return outside, inside


def join_acquired(acquired: Iterable[AcquiredRange]) -> list[AcquiredRange]:
    """Neighbours with equal delivery counts become one range. Accepts any order; disjoint."""
    joined: list[AcquiredRange] = []
    for acquired_range in sorted(acquired):
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.last_offset + 1 == acquired_range.first_offset
            and before.delivery_count == acquired_range.delivery_count
        ):
            joined[-1] = before._replace(last_offset=acquired_range.last_offset)
        else:
            joined.append(acquired_range)
    return joined


def cut_front(ranges: Sequence[_AnyRange], count_max: int) -> tuple[list[_AnyRange], list[_AnyRange]]:
    """The first `count_max` offsets, and the rest."""
    for index, offset_range in enumerate(ranges):
        length = offset_range.last_offset - offset_range.first_offset + 1
        if length > count_max:
            front, rest = list(ranges[:index]), list(ranges[index:])
            if count_max > 0:
                middle = offset_range.first_offset + count_max
                front.append(offset_range._replace(last_offset=middle - 1))
                rest[0] = offset_range._replace(first_offset=middle)
            return front, rest
        count_max -= length
    return list(ranges), []


def _pieces(first: int, last: int, by: Sequence[OffsetRange]) -> Iterator[tuple[int, int, bool]]:
    """One range cut at the ends of others: first and last offset of each piece, and whether it is in them."""
    begin = bisect_left(by, first, key=_LAST_OFFSET)
    for index in range(begin, len(by)):
        other = by[index]
        if other.first_offset > last:
            break
        if other.first_offset > first:
            yield first, other.first_offset - 1, False
            first = other.first_offset
        inside_last = min(other.last_offset, last)
        yield first, inside_last, True
        first = inside_last + 1
    if first <= last:
        yield first, last, False
