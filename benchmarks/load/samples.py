"""The durations measured while the load is steady, in seconds by name."""

import math
import time
from collections import defaultdict


class Samples:
    """Records operations that begin within the window, regardless of their end; none before `open_window`."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._begin = self._end = math.inf

    def open_window(self, seconds: float) -> None:
        """Open the window for this duration."""
        self._begin = time.perf_counter()
        self._end = self._begin + seconds

    def note(self, name: str, begin: float) -> None:
        """An operation that began at this `time.perf_counter` ends now."""
        if self._begin <= begin < self._end:
            self.seconds[name].append(time.perf_counter() - begin)

    def count(self, name: str) -> int:
        return len(self.seconds[name])
