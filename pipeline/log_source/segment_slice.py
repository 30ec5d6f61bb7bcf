"""A slice of a segment: the part that one task reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OFFSET_MAX: Final = 2**63 - 1
UNKNOWN_OFFSET: Final = -1
"""Stands for the offset of an unreadable batch, about which the reader of the slice decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSlice:
    """The batches that begin in [start_position, end_position) of a log file; one begins at the start.

    `first_offset`, that batch's base offset, and `segment_bytes`, the size of a file without further appends,
    show whether the file was rewritten since. With `is_log_end` an incomplete batch or zeros may lie before
    the end, because a broker is writing there; any other slice ends exactly with its last batch.
    """

    topic: str
    partition: int
    log_path: str
    segment_base_offset: int
    start_position: int
    end_position: int
    first_offset: int
    segment_bytes: int | None
    is_log_end: bool

    @property
    def size_bytes(self) -> int:
        return self.end_position - self.start_position
