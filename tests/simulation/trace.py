"""What happened in a run, in order: the last lines for people, a hash over all of them for the machine.

Two runs of one seed are the same run if and only if their hashes agree, so everything that chance or time
had a hand in is noted: `event` for what a person wants to read after a failure, `detail` for the rest.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

_LINES_KEPT = 4000


class Trace:
    """Lines with their virtual times. `now_ms` is the run's clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._hash = hashlib.blake2b(digest_size=8)
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self.event_count = 0
        """The number of the step that the run is at."""

    def event(self, text: str) -> None:
        """Note what a reader of a failure wants to see."""
        self.event_count += 1
        line = f"{self._now_ms():>8} ms  {text}"
        self._lines.append(line)
        self._hash.update(line.encode())

    def detail(self, text: str) -> None:
        """Note what only has to be the same again."""
        self._hash.update(f"{self._now_ms()} {text}".encode())

    def last(self, line_count: int) -> list[str]:
        """The newest lines, oldest first."""
        return list(self._lines)[-line_count:]

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
