"""Maps offsets of the source to offsets of the target, only for the offsets of groups. Pure.

Offsets shift when records are written again, because a log has offsets without records: transaction markers,
state of share groups, compacted records. For a group, an offset means "the first record at or behind it". So
it maps to that record's offset in the target, or to the end behind the last record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.pipeline.export.manifest import Manifest


class Place(NamedTuple):
    """The place of a record in the target; `position` counts the partition's records from 0."""

    offset: int
    position: int


class OffsetMarks:
    """Finds the marks of one partition while its records are read in their order."""

    def __init__(self, marks: Iterable[int]) -> None:
        self._pending = sorted(set(marks), reverse=True)
        self._taken_count = 0
        self.found: dict[int, Place] = {}
        """By offset of the source."""

    def take(self, old_offsets: Sequence[int], new_offsets: Sequence[int]) -> None:
        """The next records' offsets in the source and in the target: ascending, of the same number."""
        while self._pending and old_offsets and self._pending[-1] <= old_offsets[-1]:
            mark = self._pending.pop()
            slot = bisect_left(old_offsets, mark)
            self.found[mark] = Place(new_offsets[slot], self._taken_count + slot)
        self._taken_count += len(old_offsets)

    def finish(self, end_offset: int) -> None:
        """There are no more records; the next one would be at `end_offset` of the target."""
        for mark in self._pending:
            self.found[mark] = Place(end_offset, self._taken_count)
        self._pending.clear()


def marks_of(manifest: Manifest, topic: str, partition: int) -> list[int]:
    """The offsets in the state of a partition's groups."""
    marks: set[int] = set()
    for group in manifest.share_groups:
        for position in group.positions:
            if (position.topic, position.partition) == (topic, partition):
                marks.add(position.start_offset)
                for state in position.in_flight or ():
                    marks |= {state.first_offset, state.last_offset + 1}
    for ordinary in manifest.consumer_groups:
        for committed in ordinary.offsets:
            if (committed.topic, committed.partition) == (topic, partition):
                marks.add(committed.offset)
                for one_range in committed.ranges:
                    marks |= {one_range.first_offset, one_range.last_offset + 1}
    return sorted(marks)
