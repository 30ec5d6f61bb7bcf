"""A line of the log for something that clients can cause as often as they like.

The first occurrence is logged at once. Those within the next minute are counted, and logged as one line with
the details of the last one and the count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from barnabas.broker.clock import Clock
from barnabas.broker.deadlines import Deadlines

REPEATS_COUNTED_MS = 60_000

KEYS_MAX = 64
"""Kinds of lines that are counted one by one; any further ones are counted together."""


class CountedLine:
    """One kind of event (`Expirable`)."""

    def __init__(self, clock: Clock, deadlines: Deadlines, write: Callable[..., None]) -> None:
        """`write` logs the line; it gets the details, and `repeats` if there were any."""
        self._clock = clock
        self._deadlines = deadlines
        self._write = write
        self._deadline_ms: int | None = None
        self._repeats = 0
        self._details: dict[str, Any] = {}

    def note(self, **details: Any) -> None:
        """It has happened."""
        if self._deadline_ms is not None:
            self._repeats += 1
            self._details = details
            return
        self._write(**details)
        self._count_until(self._clock.monotonic_ms() + REPEATS_COUNTED_MS)

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def expire(self, now_ms: int) -> None:
        """Log what was counted; after a minute without any the next occurrence is a first one again."""
        repeats, self._repeats = self._repeats, 0
        self._deadline_ms = None
        if repeats:
            self._write(**self._details, repeats=repeats)
            self._count_until(now_ms + REPEATS_COUNTED_MS)

    def _count_until(self, deadline_ms: int) -> None:
        self._deadline_ms = deadline_ms
        self._deadlines.schedule(self, deadline_ms)


class CountedLines:
    """Lines of many kinds, such as one for each client and reason, counted by a key.

    Beyond `KEYS_MAX` kinds within a minute, the others share one line, which counts them all and has the
    details of the last one.
    """

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._lines: dict[Hashable, CountedLine] = {}

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: Any) -> None:
        """`event` has happened: `write`, a logger's method, gets it with the details, now or with a count."""
        line = self._lines.get((event, key))
        if line is None:
            line = self._new_line((event, key), partial(write, event))
        line.note(**details)

    def _new_line(self, key: Hashable, write: Callable[..., None]) -> CountedLine:
        if len(self._lines) >= KEYS_MAX:
            counting = {key: line for key, line in self._lines.items() if line.next_deadline_ms() is not None}
            self._lines = counting
        if len(self._lines) >= KEYS_MAX:
            key = None
        return self._lines.setdefault(key, CountedLine(self._clock, self._deadlines, write))
