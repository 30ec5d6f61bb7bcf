"""A line of the log that clients can cause as often as they like."""

from __future__ import annotations

from typing import Any

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.process.counted_line import REPEATS_COUNTED_MS, CountedLine
from tests.broker.network.edge_fakes import ManualClock, ManualTimers


class Written:
    """A counted line, and what it has logged."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.lines: list[dict[str, Any]] = []
        self.counted = CountedLine(
            self.clock, Deadlines(self.clock, self.timers.call_later), write=self._write
        )

    def _write(self, **details: Any) -> None:
        self.lines.append(details)


def test_the_first_is_written_at_once_and_the_repeats_as_one_with_their_count() -> None:
    written = Written()
    for number in range(4):
        written.counted.note(number=number)
    assert written.lines == [{"number": 0}]
    written.timers.advance(REPEATS_COUNTED_MS)
    assert written.lines == [{"number": 0}, {"number": 3, "repeats": 3}]


def test_one_that_goes_on_is_written_once_a_minute() -> None:
    written = Written()
    for _ in range(600):
        written.counted.note()
        written.timers.advance(REPEATS_COUNTED_MS // 100)
    assert [line.get("repeats") for line in written.lines] == [None, 99, 100, 100, 100, 100, 100]


def test_after_a_minute_without_any_the_next_is_a_first_one_again() -> None:
    written = Written()
    written.counted.note()
    written.timers.advance(REPEATS_COUNTED_MS)
    written.counted.note()
    assert written.lines == [{}, {}]
