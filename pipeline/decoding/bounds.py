"""The arguments of a decoder, and the bounds of its memory.

Shared by both decoders, so that they refuse the same and count the same. Sizes are in bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Final

from barnabas.protocol import compression

OffsetRange = tuple[int, int, int]
"""(first_offset, last_offset, delivery_count): both ends inclusive; the `deliveryCount` of the records."""

OFFSET_MAX: Final = 2**63 - 1
EVERYTHING: Final[Sequence[OffsetRange]] = ((0, OFFSET_MAX, 0),)
"""All offsets, with a delivery count of 0."""

ALL_TIMES: Final = (-(2**63), 2**63 - 1)
"""The least and the greatest timestamp (ms)."""

TAKEN_BYTES_MAX: Final = 8 * 1024 * 1024
"""A decoder of this size takes no further batch until it is emptied: the size of one batch for Spark."""
DECOMPRESSED_BYTES_MAX: Final = compression.DECOMPRESSED_BYTES_MAX
"""The greatest size of the unpacked records of one batch; a larger one is a `BatchError`."""

FIXED_BYTES: Final = {
    "key": 4,
    "value": 4,
    "offset": 8,
    "timestamp": 8,
    "timestampType": 4,
    "headers": 4,
    "deliveryCount": 4,
}
"""The size of a record in each column, without the bytes of its key, value and headers."""
HEADER_FIXED_BYTES: Final = 8
"""The size of a header without its name and value."""

_ARROW_BYTES_MAX: Final = 2**31 - 1
"""Arrow's binary arrays count their bytes in 32 bits."""
_WORST_GROWTH: Final = 3
"""A byte of a header's name that isn't UTF-8 becomes the three bytes of U+FFFD."""
_DELIVERY_COUNT_MAX: Final = 2**31 - 1


def check_bounds(taken_bytes_max: int, decompressed_bytes_max: int) -> None:
    """ValueError for bounds that allow a column to outgrow an Arrow array."""
    if taken_bytes_max < 1 or decompressed_bytes_max < 1:
        raise ValueError("taken_bytes_max and decompressed_bytes_max are at least 1.")
    if taken_bytes_max + _WORST_GROWTH * decompressed_bytes_max > _ARROW_BYTES_MAX:
        raise ValueError(
            f"taken_bytes_max + {_WORST_GROWTH} * decompressed_bytes_max is more than {_ARROW_BYTES_MAX}."
        )


def check_columns(columns: Collection[str]) -> None:
    """ValueError for a column that no decoder builds, or one named twice."""
    if len(set(columns)) != len(columns) or not set(columns) <= set(FIXED_BYTES):
        raise ValueError(f"{', '.join(columns)}: there are, each once, {', '.join(FIXED_BYTES)}.")


def check_ranges(ranges: Sequence[OffsetRange]) -> None:
    """ValueError for ranges that don't ascend, or overlap."""
    free_from = 0
    for first_offset, last_offset, delivery_count in ranges:
        if not free_from <= first_offset <= last_offset <= OFFSET_MAX:
            raise ValueError(f"The range {first_offset} to {last_offset} is empty, or not behind the others.")
        if not 0 <= delivery_count <= _DELIVERY_COUNT_MAX:
            raise ValueError(
                f"The delivery count {delivery_count} is not between 0 and {_DELIVERY_COUNT_MAX}."
            )
        free_from = last_offset + 1


def check_span(length: int, start: int, end: int | None) -> int:
    """The end; ValueError unless 0 <= start <= end <= length."""
    end = length if end is None else end
    if not 0 <= start <= end <= length:
        raise ValueError(f"{start} to {end} is not within the {length} bytes.")
    return end


def first_range(ranges: Sequence[OffsetRange], offset: int) -> int:
    """Index of the first range that ends at `offset` or behind it; their number if there is none."""
    return bisect_left(ranges, offset, key=itemgetter(1))
