"""Log lines for events that clients can cause without limit.

The first occurrence is logged at once. Those within the next minute are counted, and logged as one line with
the details of the last one and the count. A stop of the broker logs the remaining counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines

REPEATS_COUNTED_MS = 60_000

KEYS_MAX = 64
"""Keys of one event that are counted separately; further keys of the event are counted together."""


class CountedLine:
    """One kind of event (`Expirable`)."""

    def __init__(self, clock: Clock, deadlines: Deadlines, write: Callable[..., None]) -> None:
        """`write` logs the line with the details, and with `repeats` if there were any."""
        self._clock = clock
        self._deadlines = deadlines
        self._write = write
        self._deadline_ms: int | None = None
        self._repeats = 0
        self._details: dict[str, object] = {}

    def note(self, **details: object) -> None:
        """Log the event, or count it if it was logged within the last minute."""
        if self._deadline_ms is not None:
            self._repeats += 1
            details.pop("exc_info", None)  # it would keep the memory of a failed request for a minute
            self._details = details
            return
        self._write(**details)
        self._count_until(self._clock.monotonic_ms() + REPEATS_COUNTED_MS)

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def expire(self, now_ms: int) -> None:
        """Log the count of the last minute. After a minute without events, the next one is logged at once."""
        self._deadline_ms = None
        if self._repeats:
            self.flush()
            self._count_until(now_ms + REPEATS_COUNTED_MS)

    def flush(self) -> None:
        """Log the count so far."""
        repeats, self._repeats = self._repeats, 0
        if repeats:
            self._write(**self._details, repeats=repeats)

    def _count_until(self, deadline_ms: int) -> None:
        self._deadline_ms = deadline_ms
        self._deadlines.schedule(self, deadline_ms)


class CountedLines:
    """Counted lines by event and key; a key is, for example, a client and a reason.

    Beyond `KEYS_MAX` keys of one event within a minute, its other keys share one line. That line counts them
    all and has the details of the last one.
    """

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._lines: dict[str, dict[Hashable, CountedLine]] = {}

    def note(self, write: Callable[..., None], event: str, key: Hashable, **details: object) -> None:
        """Log `event` with `write`, a logger's method, at once or later with a count.

        Each event is always written with the same method. `key` is not None.
        """
        lines = self._lines.get(event, {})
        if key not in lines and len(lines) >= KEYS_MAX:
            lines = {key: line for key, line in lines.items() if line.next_deadline_ms() is not None}
            if len(lines) >= KEYS_MAX:
                key = None
        if key not in lines:
            lines[key] = CountedLine(self._clock, self._deadlines, partial(write, event))
        self._lines[event] = lines
        lines[key].note(**details)

    def flush(self) -> None:
        """Log all counts so far."""
        for lines in self._lines.values():
            for line in lines.values():
                line.flush()
