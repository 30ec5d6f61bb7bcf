"""The runs of share control records of one log, which are holes in the offsets that clients see.

Counts (in-flight window, MaxRecords, lag) include data offsets only, and clients never get a control offset.
This module has the arithmetic for both. Sorted arrays of eight-byte integers and a running count make each
query a binary search; a log without control records needs only a length check.

The runs of old segments are loaded when a query reaches them: a log opens without them, and most queries
concern its end.

The content of the records does not matter here. Holes of compaction count as data, as in Apache Kafka.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, repeat
from operator import le

Run = tuple[int, int]
"""(first, last) control offset."""

OlderRuns = Callable[[int], tuple[int, Iterable[Run]] | None]
"""Returns, for an offset, the start of a stretch of the log that ends there, and its runs, ascending; None at
the start of the log. May raise the errors of reading an index.
"""


class ControlRuns:
    """Disjoint runs of control offsets, ascending. All offsets are absolute, all ranges inclusive.

    Runs below `known_from` are loaded with `older`, stretch by stretch, each once, when a query reaches them.
    A query raises the errors of `older`, and may be repeated.
    """

    __slots__ = ("_before", "_first", "_last", "_older", "known_from", "loading")

    def __init__(self, *, known_from: int = 0, older: OlderRuns | None = None) -> None:
        self.known_from = known_from
        """All runs at or above this offset are known."""
        self.loading: AbstractContextManager[None] = nullcontext()
        """The context in which older runs are loaded; it may turn the errors of `older` into others."""
        self._older = older
        self._first = array("q")
        self._last = array("q")
        self._before = array("q")
        """For each run, the number of control offsets in the runs below it, including dropped runs, minus the
        runs that were loaded later. Only differences of these numbers are used.
        """

    def __len__(self) -> int:
        """The number of known runs, plus one if there may be older ones: 0 only without any run."""
        return len(self._first) + (self.known_from > 0)

    def append(self, base_offset: int, last_offset: int) -> None:
        """Adds a run above all others, and joins it to the newest one if they touch."""
        assert base_offset <= last_offset, (base_offset, last_offset)
        before = 0
        if self._first:
            newest = self._last[-1]
            assert base_offset > newest, (base_offset, newest)
            if base_offset == newest + 1:
                self._last[-1] = last_offset
                return
            before = self._before[-1] + newest - self._first[-1] + 1
        self._first.append(base_offset)
        self._last.append(last_offset)
        self._before.append(before)

    def know_from(self, offset: int) -> None:
        """Loads the older runs down to `offset`."""
        while offset < self.known_from > 0:
            with self.loading:
                stretch = None if self._older is None else self._older(self.known_from)
            if stretch is None:
                self.known_from = 0
            else:
                self.known_from, runs = stretch
                self._prepend(list(runs))

    def drop_below(self, offset: int) -> None:
        """Forgets the runs that are wholly below `offset`, the log start; no query concerns them."""
        dropped = bisect_left(self._last, offset)
        del self._first[:dropped], self._last[:dropped], self._before[:dropped]

    def data_count(self, first_offset: int, last_offset: int) -> int:
        """The number of offsets from first to last, both included, in no run; 0 for an empty range."""
        if last_offset < first_offset:
            return 0
        if first_offset < self.known_from:
            self.know_from(first_offset)
        count = last_offset - first_offset + 1
        firsts, lasts = self._first, self._last
        if not firsts or first_offset > lasts[-1]:
            return count
        low = bisect_left(lasts, first_offset)
        if firsts[low] > last_offset:
            return count
        # The runs from `low` to `high` overlap the range; only these two may reach beyond it.
        high = bisect_right(firsts, last_offset, low) - 1
        control_count = self._before[high] - self._before[low]
        control_count += min(lasts[high], last_offset) - firsts[high] + 1
        control_count -= max(first_offset - firsts[low], 0)
        return count - control_count

    def is_any_in(self, firsts: Sequence[int], lasts: Sequence[int]) -> bool:
        """Whether a control offset lies in one of these ranges. They ascend, are disjoint, and lie in a range
        that `data_count` was called for.
        """
        if not self._first:
            return False
        begin, end = bisect_left(self._last, firsts[0]), bisect_left(self._last, lasts[-1]) + 1
        run_ends = self._last[begin:end]
        run_starts = [*self._first[begin:end], lasts[-1] + 1]
        # In functions of C: an acknowledgement may have a range for each record.
        indexes = map(bisect_left, repeat(run_ends), firsts)
        return any(map(le, map(run_starts.__getitem__, indexes), lasts))

    def next_data_offset(self, offset: int) -> int:
        """`offset`, or the first one behind its run if it is in one."""
        if offset < self.known_from:
            self.know_from(offset)
        if not self._first or offset > self._last[-1]:
            return offset
        run = bisect_left(self._last, offset)
        return offset if self._first[run] > offset else self._last[run] + 1

    def previous_data_offset(self, offset: int) -> int:
        """`offset`, or the last one before its run if it is in one; may be -1."""
        if offset < self.known_from:
            self.know_from(offset)
        if not self._first or offset > self._last[-1]:
            return offset
        run = bisect_right(self._first, offset) - 1
        if run < 0 or offset > self._last[run]:
            return offset
        while 0 < self._first[run] == self.known_from:  # Older control offsets may adjoin the run.
            self.know_from(self.known_from - 1)
            run = bisect_right(self._first, offset) - 1
        return self._first[run] - 1

    def data_ranges(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """The range without the runs: (first, last) of each piece, ascending."""
        if first_offset < self.known_from:
            self.know_from(first_offset)
        if not self._first or first_offset > self._last[-1]:
            return [(first_offset, last_offset)] if first_offset <= last_offset else []
        low = bisect_left(self._last, first_offset)
        if self._first[low] > last_offset >= first_offset:
            return [(first_offset, last_offset)]
        high = bisect_right(self._first, last_offset)
        starts = [first_offset, *[last + 1 for last in self._last[low:high]]]
        ends = [*[first - 1 for first in self._first[low:high]], last_offset]
        return [piece for piece in zip(starts, ends, strict=True) if piece[0] <= piece[1]]

    def nth_data_offset(self, first_offset: int, count: int) -> int:
        """The offset of data record number `count` (1 is the first) at or above `first_offset`.

        This is only arithmetic: the log may end before that offset.
        """
        assert count >= 1, count
        first_data_offset = self.next_data_offset(first_offset)
        if not self._first or first_data_offset > self._last[-1]:
            return first_data_offset + count - 1
        next_run = bisect_left(self._last, first_data_offset)
        if self._first[next_run] >= first_data_offset + count:
            return first_data_offset + count - 1
        ordinal = first_data_offset - self._control_count_below(first_data_offset) + count - 1
        # There is data between any two runs, so the wanted record lies before run `next_run + count`.
        high = min(next_run + count, len(self._first))
        below = bisect_right(range(high), ordinal, lo=next_run, key=self._ordinal_at)
        return ordinal + self._count_through(below - 1)

    def _prepend(self, runs: list[Run]) -> None:
        """Adds runs below all others, and joins the last of them to the oldest one if they touch."""
        before = self._before[0] if self._first else 0
        if runs and self._first and runs[-1][1] + 1 == self._first[0]:
            first, last = runs.pop()
            self._first[0] = first
            self._before[0] = before = before - (last - first + 1)
        lengths = [last - first + 1 for first, last in runs]
        before -= sum(lengths)
        self._first = array("q", [first for first, _ in runs]) + self._first
        self._last = array("q", [last for _, last in runs]) + self._last
        self._before = array("q", accumulate(lengths, initial=before))[:-1] + self._before

    def _control_count_below(self, offset: int) -> int:
        """Control offsets below `offset`, including dropped runs, which a difference cancels."""
        run = bisect_left(self._first, offset) - 1
        if run < 0:
            return self._before[0]
        inside = min(self._last[run] + 1, offset) - self._first[run]
        return self._before[run] + inside

    def _ordinal_at(self, run: int) -> int:
        """The number of data offsets below the run: the ordinal of the first data record behind it."""
        return self._first[run] - self._before[run]

    def _count_through(self, run: int) -> int:
        return self._before[run] + self._last[run] - self._first[run] + 1
