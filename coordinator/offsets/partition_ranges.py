"""The individually committed ranges of one partition, and the records of them in the log. Pure.

A commit writes the merged ranges, and tombstones for the ranges that they replace, so usually each range in
force has a record of its own. The end of a transaction merges the ranges of its records with others, and a
reset takes all of them out of force. Until the next write, ranges are then `unlogged`, or records `stale`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.committed_ranges import CommittedRanges, OffsetRange, RangesChange


class RangeWrites(NamedTuple):
    """The records that bring the log in step with the ranges in force; all ascending."""

    stable_offset: int
    added: list[OffsetRange]
    removed: list[OffsetRange]
    """Ranges that get a tombstone."""


class PartitionRanges:
    """The ranges of one partition, changed by replay only."""

    __slots__ = ("_stale", "_unlogged", "committed_at_ms", "logged_stable_offset", "ranges")

    def __init__(self, stable_offset: int) -> None:
        self.ranges = CommittedRanges(stable_offset)
        self.logged_stable_offset = stable_offset
        """That of the last record of the committed offset."""
        self.committed_at_ms: int | None = None
        """When (monotonic) a range was last committed; None if no record of one was replayed."""
        self._unlogged: set[OffsetRange] = set()
        """Ranges in force that were merged from several records."""
        self._stale: set[OffsetRange] = set()
        """Records whose range is part of another one by now, or not in force."""

    @property
    def is_empty(self) -> bool:
        """Whether neither a range nor a record of one is left."""
        return not self._stale and not len(self.ranges)

    # Replay

    def replay_stable(self, stable_offset: int) -> None:
        """A record of the stable offset that keeps the ranges beyond it."""
        self.logged_stable_offset = stable_offset
        self._note(self.ranges.commit([(0, stable_offset)]))

    def replay_reset(self, stable_offset: int) -> None:
        """A record of an ordinary committed offset."""
        self.logged_stable_offset = stable_offset
        self._stale |= set(self.ranges) - self._unlogged
        self._unlogged.clear()
        self.ranges.reset(stable_offset)

    def replay_range(self, added: OffsetRange, committed_at_ms: int) -> None:
        """A record of a range that is in force."""
        last_ms = self.committed_at_ms
        self.committed_at_ms = committed_at_ms if last_ms is None else max(last_ms, committed_at_ms)
        self._note(self.ranges.commit([added]))
        if added in self._unlogged:
            self._unlogged.remove(added)
        elif not self.ranges.has_range(added):
            self._stale.add(added)

    def replay_tombstone(self, removed: OffsetRange) -> None:
        """The record of a range is gone."""
        if removed in self._stale:
            self._stale.remove(removed)
        elif removed not in self._unlogged:
            self.ranges.remove(removed)

    # Decisions

    def writes_of(self, change: RangesChange) -> RangeWrites:
        """The writes for a planned commit, and for earlier changes without records."""
        removed = set(change.removed)
        added = set(change.added)
        return RangeWrites(
            change.stable_offset,
            sorted((added - self._stale) | (self._unlogged - removed)),
            sorted((removed - self._unlogged) | (self._stale - added)),
        )

    def amending_writes(self) -> RangeWrites | None:
        """The writes for earlier changes without records; None if the log is in step."""
        is_in_step = self.ranges.stable_offset == self.logged_stable_offset
        if is_in_step and not self._unlogged and not self._stale:
            return None
        return self.writes_of(RangesChange(self.ranges.stable_offset, (), ()))

    def logged(self) -> set[OffsetRange]:
        """The ranges that have a record, in force or not."""
        return (set(self.ranges) - self._unlogged) | self._stale

    def _note(self, change: RangesChange) -> None:
        for removed in change.removed:
            if removed in self._unlogged:
                self._unlogged.remove(removed)
            else:
                self._stale.add(removed)
        for added in change.added:
            if added in self._stale:
                self._stale.remove(added)
            else:
                self._unlogged.add(added)
