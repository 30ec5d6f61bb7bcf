"""The events of a run, in order: the last lines for people, a hash over all of them for comparison.

Two runs of one seed are the same run if and only if their hashes agree. So everything that depends on time or
randomness is recorded: `event` for lines that a person wants to read after a failure, `detail` for the rest.
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
        """The number of the current step."""

    def event(self, text: str) -> None:
        """Records a line for the reader of a failure."""
        self.event_count += 1
        line = f"{self._now_ms():>8} ms  {text}"
        self._lines.append(line)
        self._hash.update(line.encode())

    def detail(self, text: str) -> None:
        """Records a detail that only has to be equal in a repeated run."""
        self._hash.update(f"{self._now_ms()} {text}".encode())

    def last(self, line_count: int) -> list[str]:
        """The newest lines, oldest first."""
        return list(self._lines)[-line_count:]

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
