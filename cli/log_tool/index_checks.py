"""Checks a segment's offset, time and share index against its batches while the segment is read.

Index entries of the newest batches reach the disk with a flush, after the batches. So entries may be missing
for batches that are not durable yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.cli.log_tool.control_records import ControlRecord
from barnabas.cli.log_tool.findings import Finding
from barnabas.cli.log_tool.segments import Indexes
from barnabas.cli.log_tool.verification import SegmentPlace
from barnabas.storage.format.share_index import ShareIndex, ShareIndexEntry, group_hash
from barnabas.storage.segments.damage import Damage
from barnabas.storage.segments.segment import OFFSET_INDEX_SUFFIX, SHARE_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from barnabas.storage.segments.segment_scan import ScannedBatch
from barnabas.storage.share.share_state import read_control_batch


class OffsetEntries:
    """The offset index: each entry must name the batch at its position."""

    def __init__(self, place: SegmentPlace, indexes: Indexes) -> None:
        self._place = place
        self._is_ascending = indexes.offsets.is_ascending()
        self._entries = list(indexes.offsets.entries()) if self._is_ascending else []
        self._next = 0

    def skip(self, damage: Damage) -> None:
        """Nothing can be said of entries that point into damage."""
        while self._next < len(self._entries) and self._entries[self._next][1] < damage.end:
            self._next += 1

    def check(self, batch: ScannedBatch) -> Iterator[Finding]:
        """The next good batch."""
        end = batch.position + len(batch.data)
        while self._next < len(self._entries) and self._entries[self._next][1] < end:
            entry = self._entries[self._next]
            self._next += 1
            if entry != (batch.header.last_offset, batch.position):
                yield self._finding(*entry, "where there is no such batch")

    def finish(self) -> Iterator[Finding]:
        """The end of the segment."""
        if not self._is_ascending:
            yield self._place.in_index(OFFSET_INDEX_SUFFIX, None, "its entries aren't ascending")
        for entry in self._entries[self._next :]:
            yield self._finding(*entry, "after the segment's end")

    def _finding(self, last_offset: int, position: int, problem: str) -> Finding:
        message = f"the entry for offset {last_offset} points to {position}, {problem}"
        return self._place.in_index(OFFSET_INDEX_SUFFIX, last_offset, message)


class TimeEntries:
    """The time index: no record up to an entry's offset may be later than the entry's time."""

    def __init__(self, place: SegmentPlace, indexes: Indexes) -> None:
        self._place = place
        self._entries = list(indexes.times.entries())
        self._next = 0
        self._max_timestamp_ms = -1

    def check(self, batch: ScannedBatch) -> Iterator[Finding]:
        """The next good batch that isn't share state."""
        self._max_timestamp_ms = max(self._max_timestamp_ms, batch.header.max_timestamp_ms)
        while self._next < len(self._entries) and self._entries[self._next][1] <= batch.header.last_offset:
            timestamp_ms, offset = self._entries[self._next]
            self._next += 1
            if offset == batch.header.last_offset and self._max_timestamp_ms > timestamp_ms:
                yield self._place.in_index(
                    TIME_INDEX_SUFFIX,
                    offset,
                    f"its time is {timestamp_ms}, but a record before it has {self._max_timestamp_ms}",
                )

    def finish(self) -> Iterator[Finding]:
        """The end of the segment."""
        for before, after in zip(self._entries, self._entries[1:], strict=False):
            if after[0] <= before[0] or after[1] < before[1]:
                message = f"the entry for {after[0]} is not after the one before it, for {before[0]}"
                yield self._place.in_index(TIME_INDEX_SUFFIX, after[1], message)


class ShareEntries:
    """The share index: an entry for each batch of share state, and for nothing else."""

    def __init__(self, place: SegmentPlace, indexes: Indexes) -> None:
        self._place = place
        self._entries = dict(enumerate(_entries_of(indexes.shares)))
        """By slot, those that were not found to be right yet."""
        self._slot_at = {entry.position: slot for slot, entry in reversed(self._entries.items())}
        """The first slot for each position."""
        self._is_there = SHARE_INDEX_SUFFIX in indexes.found

    def skip(self, damage: Damage) -> None:
        """Nothing can be said of entries that point into damage."""
        self._entries = {
            slot: entry
            for slot, entry in self._entries.items()
            if not damage.position <= entry.position < damage.end
        }

    def check(self, batch: ScannedBatch, control: ControlRecord | None) -> Iterator[Finding]:
        """The next good batch; `control` if it is share state."""
        if control is None:
            return
        found = self._entries.pop(self._slot_at.get(batch.position, -1), None)
        offset = batch.header.base_offset
        if found is None:
            if self._place.is_settled(batch.header.last_offset):
                problem = "there is no entry" if self._is_there else "the file is missing, and the entry"
                message = f"{problem} for the share state at position {batch.position}"
                yield self._place.in_index(SHARE_INDEX_SUFFIX, offset, message)
        elif found != (expected := _expected_entry(batch)):
            message = f"the entry for position {batch.position} has {_differences(found, expected)}"
            yield self._place.in_index(SHARE_INDEX_SUFFIX, offset, message)

    def finish(self) -> Iterator[Finding]:
        """The end of the segment."""
        for entry in self._entries.values():
            where = f"points to {entry.position}, where there is no share state"
            message = f"the entry for offset {entry.offset} {where}"
            yield self._place.in_index(SHARE_INDEX_SUFFIX, entry.offset, message)


def _entries_of(index: ShareIndex) -> list[ShareIndexEntry]:
    return [index[slot] for slot in range(len(index))]


def _expected_entry(batch: ScannedBatch) -> ShareIndexEntry:
    position, header, data = batch
    told = read_control_batch(data, header)
    assert told is not None, header
    return ShareIndexEntry(
        header.base_offset,
        position,
        len(data),
        group_hash(told.group_id),
        header.last_offset_delta,
        told.kind,
        told.tombstone,
    )


def _differences(found: ShareIndexEntry, expected: ShareIndexEntry) -> str:
    return ", ".join(
        f"{name} {getattr(found, name)} for {getattr(expected, name)}"
        for name in expected._fields
        if getattr(found, name) != getattr(expected, name)
    )
