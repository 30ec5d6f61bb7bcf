"""A line of the log that clients can cause as often as they like."""

from __future__ import annotations

from typing import Any

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.process.counted_line import (
    KEYS_MAX,
    REPEATS_COUNTED_MS,
    CountedLine,
    CountedLines,
)
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


def test_kinds_are_counted_apart_up_to_their_bound_and_together_beyond_it() -> None:
    clock = ManualClock()
    timers = ManualTimers(clock)
    counted = CountedLines(clock, Deadlines(clock, timers.call_later))
    lines: list[tuple[str, dict[str, Any]]] = []

    def write(event: str, **details: Any) -> None:
        lines.append((event, details))

    for _ in range(2):
        for number in range(KEYS_MAX + 10):
            counted.note(write, "refused", number, number=number)
    assert len(lines) == KEYS_MAX + 1
    timers.advance(REPEATS_COUNTED_MS)
    repeats = [details["repeats"] for _, details in lines[KEYS_MAX + 1 :]]
    assert sorted(repeats) == [1] * KEYS_MAX + [19]


def test_kinds_that_have_not_come_for_a_minute_make_room_for_others() -> None:
    clock = ManualClock()
    timers = ManualTimers(clock)
    counted = CountedLines(clock, Deadlines(clock, timers.call_later))
    events: list[str] = []
    for minute in range(3):
        for number in range(KEYS_MAX):
            counted.note(events.append, f"event {minute}", number)
        timers.advance(REPEATS_COUNTED_MS)
    assert len(events) == 3 * KEYS_MAX
