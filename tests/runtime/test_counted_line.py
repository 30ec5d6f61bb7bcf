"""Log lines that clients can cause without limit."""

from __future__ import annotations

from typing import Any

from barnabas.runtime.counted_line import (
    KEYS_MAX,
    REPEATS_COUNTED_MS,
    CountedLine,
    CountedLines,
)
from barnabas.runtime.deadlines import Deadlines
from tests.broker.network.edge_fakes import ManualClock, ManualTimers


class Written:
    """A counted line, and the lines that it has logged."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.lines: list[dict[str, Any]] = []
        self.counted = CountedLine(
            self.clock, Deadlines(self.clock, self.timers.call_later), write=self._write
        )

    def _write(self, **details: Any) -> None:
        self.lines.append(details)


def test_the_first_line_is_written_at_once_and_the_repeats_as_one_with_their_count() -> None:
    written = Written()
    for number in range(4):
        written.counted.note(number=number)
    assert written.lines == [{"number": 0}]
    written.timers.advance(REPEATS_COUNTED_MS)
    assert written.lines == [{"number": 0}, {"number": 3, "repeats": 3}]


def test_an_event_that_continues_is_written_once_a_minute() -> None:
    written = Written()
    for _ in range(600):
        written.counted.note()
        written.timers.advance(REPEATS_COUNTED_MS // 100)
    assert [line.get("repeats") for line in written.lines] == [None, 99, 100, 100, 100, 100, 100]


def test_after_a_minute_without_events_the_next_is_written_at_once() -> None:
    written = Written()
    written.counted.note()
    written.timers.advance(REPEATS_COUNTED_MS)
    written.counted.note()
    assert written.lines == [{}, {}]


class WrittenLines:
    """Counted lines of many keys, and the lines that they have logged."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.timers = ManualTimers(clock)
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.counted = CountedLines(clock, Deadlines(clock, self.timers.call_later))

    def note(self, event: str, key: int, **details: Any) -> None:
        self.counted.note(self._write, event, key, **details)

    def _write(self, event: str, **details: Any) -> None:
        self.lines.append((event, details))


def test_keys_are_counted_separately_up_to_their_bound_and_together_beyond_it() -> None:
    written = WrittenLines()
    for _ in range(2):
        for number in range(KEYS_MAX + 10):
            written.note("refused", number, number=number)
    assert len(written.lines) == KEYS_MAX + 1
    written.timers.advance(REPEATS_COUNTED_MS)
    repeats = [details["repeats"] for _, details in written.lines[KEYS_MAX + 1 :]]
    assert sorted(repeats) == [1] * KEYS_MAX + [19]


def test_an_event_with_too_many_keys_does_not_affect_other_events() -> None:
    written = WrittenLines()
    for number in range(KEYS_MAX + 10):
        written.note("refused", number)
    written.note("failed", 0, number=7)
    assert written.lines[-1] == ("failed", {"number": 7})


def test_keys_without_events_for_a_minute_make_room_for_others() -> None:
    written = WrittenLines()
    for minute in range(3):
        for number in range(KEYS_MAX):
            written.note("refused", minute * KEYS_MAX + number)
        written.timers.advance(REPEATS_COUNTED_MS)
    assert len(written.lines) == 3 * KEYS_MAX


def test_a_stop_logs_the_remaining_counts() -> None:
    written = WrittenLines()
    for number in range(3):
        written.note("refused", 0, number=number)
    written.counted.flush()
    assert written.lines == [("refused", {"number": 0}), ("refused", {"number": 2, "repeats": 2})]
    written.counted.flush()
    assert len(written.lines) == 2


def test_only_the_first_line_keeps_the_traceback() -> None:
    written = WrittenLines()
    error = ValueError("a bug")
    for _ in range(2):
        written.note("failed", 0, error=repr(error), exc_info=error)
    written.counted.flush()
    assert [sorted(details) for _, details in written.lines] == [["error", "exc_info"], ["error", "repeats"]]
