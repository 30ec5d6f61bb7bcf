"""Offsets as the numbers of data records, so that a log with share state reads like one without.

With `share.state.store=log` the broker's own records take up offsets between those of the data. The records
of a partition are numbered from 0 on, in the order in which they were produced; an offset becomes the number
of records below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from tests.differential.plain import Plain, is_list, is_mapping

_OFFSET_FIELDS: Final = frozenset(
    {
        "offset",
        "base_offset",
        "first_offset",
        "last_offset",
        "start_offset",
        "low_watermark",
        "log_start_offset",
    }
)
_PARTITION_FIELDS: Final = ("partition_index", "index", "partition")


class Numbering:
    """The offsets of one partition's data records, ascending."""

    def __init__(self) -> None:
        self._offsets: list[int] = []

    def add(self, base_offset: int, count: int) -> None:
        """Adds produced records, which have consecutive offsets."""
        self._offsets += range(base_offset, base_offset + count)

    def number(self, offset: int) -> int:
        """The number of records below an offset; -1 stays -1."""
        return bisect_left(self._offsets, offset) if offset >= 0 else offset

    def offset(self, number: int) -> int:
        """The offset of a record; behind the last one, offsets are assumed to continue without gaps."""
        beyond = number - len(self._offsets)
        if beyond < 0:
            return self._offsets[number] if number >= 0 else number
        return (self._offsets[-1] + 1 if self._offsets else 0) + beyond


def renumbered(
    value: Plain, numberings: Mapping[tuple[str, int], Numbering], topic_id: str = "", partition: int = -1
) -> Plain:
    """An answer with numbers in place of offsets; `numberings` are by topic id, under its plain name, and
    partition.
    """
    if is_list(value):
        return [renumbered(item, numberings, topic_id, partition) for item in value]
    if not is_mapping(value):
        return value
    topic_id = value.get("topic_id") or topic_id
    partition = next((value[name] for name in _PARTITION_FIELDS if name in value), partition)
    numbering = numberings.get((topic_id, partition))
    plain = {name: renumbered(item, numberings, topic_id, partition) for name, item in value.items()}
    if numbering is not None:
        for name in _OFFSET_FIELDS & plain.keys():
            if isinstance(plain[name], int):
                plain[name] = numbering.number(plain[name])
    return plain
