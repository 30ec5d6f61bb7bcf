"""The runs of share control records of one log, which are holes in the offsets that clients see.

Counts (in-flight window, MaxRecords, lag) take data offsets only, and clients are never told a control
offset; this is the arithmetic for both. Sorted arrays of eight-byte integers and a running count make each
question a binary search; a log without control records pays a length check.

The runs of old segments come in when somebody asks about offsets that low: a log opens without them, and
most questions are about its end.

It knows nothing of what the records say, nor of holes that compaction leaves: those count as data, as
they do in Apache Kafka.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate

Run = tuple[int, int]
"""(first, last) control offset."""

OlderRuns = Callable[[int], tuple[int, Iterable[Run]] | None]
"""Answers for an offset where some stretch of the log that ends there begins, and the runs in it, ascending;
None where the log begins. May raise what reading an index raises.
"""


class ControlRuns:
    """Disjoint runs of control offsets, ascending. All offsets are absolute, all ranges inclusive.

    Those below `known_from` are asked of `older` stretch by stretch, each once, when a question reaches them;
    whatever it raises the question raises, and may be asked again.
    """

    __slots__ = ("_before", "_first", "_last", "_older", "known_from")

    def __init__(self, *, known_from: int = 0, older: OlderRuns | None = None) -> None:
        self.known_from = known_from
        """All runs at or above this offset are known."""
        self._older = older
        self._first = array("q")
        self._last = array("q")
        self._before = array("q")
        """For each run, how many control offsets lie in the runs below it, dropped ones included, and less
        those that came in later.
        """

    def __len__(self) -> int:
        """How many runs are known, and one for all that may lie below: 0 only if there are none."""
        return len(self._first) + (self.known_from > 0)

    def append(self, base_offset: int, last_offset: int) -> None:
        """Adds a run above all others, and joins it to the newest one where they touch."""
        assert base_offset <= last_offset, (base_offset, last_offset)
        if not self._first:
            self._push(base_offset, last_offset, 0)
            return
        newest = self._last[-1]
        assert base_offset > newest, (base_offset, newest)
        if base_offset == newest + 1:
            self._last[-1] = last_offset
        else:
            self._push(base_offset, last_offset, self._before[-1] + newest - self._first[-1] + 1)

    def know_from(self, offset: int) -> None:
        """Takes in the older runs down to `offset`, for questions that are to find them there."""
        while offset < self.known_from > 0:
            stretch = None if self._older is None else self._older(self.known_from)
            if stretch is None:
                self.known_from = 0
            else:
                self.known_from, runs = stretch
                self._prepend(list(runs))

    def drop_below(self, offset: int) -> None:
        """Forgets the runs that lie wholly below `offset`, the log's start: nobody asks about them again."""
        dropped = bisect_left(self._last, offset)
        del self._first[:dropped], self._last[:dropped], self._before[:dropped]

    def data_count(self, first_offset: int, last_offset: int) -> int:
        """How many offsets from first to last, both included, are in no run; 0 if the range is empty."""
        if last_offset < first_offset:
            return 0
        if first_offset < self.known_from:
            self.know_from(first_offset)
        count = last_offset - first_offset + 1
        if not self._first or first_offset > self._last[-1]:
            return count
        if self._first[bisect_left(self._last, first_offset)] > last_offset:
            return count
        return count - self._control_count_below(last_offset + 1) + self._control_count_below(first_offset)

    def next_data_offset(self, offset: int) -> int:
        """The offset itself, or the first one behind the run that it is in."""
        if offset < self.known_from:
            self.know_from(offset)
        if not self._first or offset > self._last[-1]:
            return offset
        run = bisect_left(self._last, offset)
        return offset if self._first[run] > offset else self._last[run] + 1

    def previous_data_offset(self, offset: int) -> int:
        """The offset itself, or the last one before the run that it is in; may be -1."""
        if offset < self.known_from:
            self.know_from(offset)
        if not self._first or offset > self._last[-1]:
            return offset
        while (run := self._run_of(offset)) is not None and 0 < self._first[run] == self.known_from:
            self.know_from(self.known_from - 1)
        return offset if run is None else self._first[run] - 1

    def data_ranges(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """The range cut around the runs: (first, last) of each piece, ascending."""
        if first_offset < self.known_from:
            self.know_from(first_offset)
        if not self._first or first_offset > self._last[-1]:
            return [(first_offset, last_offset)] if first_offset <= last_offset else []
        low = bisect_left(self._last, first_offset)
        high = bisect_right(self._first, last_offset)
        starts = [first_offset, *[last + 1 for last in self._last[low:high]]]
        ends = [*[first - 1 for first in self._first[low:high]], last_offset]
        return [piece for piece in zip(starts, ends, strict=True) if piece[0] <= piece[1]]

    def nth_data_offset(self, first_offset: int, count: int) -> int:
        """The offset of the data record number `count` (1 is the first) at or above `first_offset`.

        It is arithmetic alone: the log need not reach that far.
        """
        assert count >= 1, count
        first_data_offset = self.next_data_offset(first_offset)
        if not self._first or first_data_offset > self._last[-1]:
            return first_data_offset + count - 1
        next_run = bisect_left(self._last, first_data_offset)
        if self._first[next_run] >= first_data_offset + count:
            return first_data_offset + count - 1
        ordinal = first_data_offset - self._control_count_below(first_data_offset) + count - 1
        # There is data between any two runs, so that the wanted record lies before run `next_run + count`.
        high = min(next_run + count, len(self._first))
        below = bisect_right(range(high), ordinal, lo=next_run, key=self._ordinal_at)
        return ordinal + self._count_through(below - 1)

    def _push(self, first: int, last: int, before: int) -> None:
        self._first.append(first)
        self._last.append(last)
        self._before.append(before)

    def _prepend(self, runs: list[Run]) -> None:
        """Adds runs below all others, and joins the last of them to the oldest one where they touch."""
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

    def _run_of(self, offset: int) -> int | None:
        run = bisect_right(self._first, offset) - 1
        return run if run >= 0 and offset <= self._last[run] else None

    def _control_count_below(self, offset: int) -> int:
        """Control offsets below `offset`, with those of dropped runs, which a difference cancels."""
        run = bisect_left(self._first, offset) - 1
        if run < 0:
            return self._before[0]
        inside = min(self._last[run] + 1, offset) - self._first[run]
        return self._before[run] + inside

    def _ordinal_at(self, run: int) -> int:
        """How many data offsets lie below the run: the ordinal of the first data record behind it."""
        return self._first[run] - self._before[run]

    def _count_through(self, run: int) -> int:
        return self._before[run] + self._last[run] - self._first[run] + 1
