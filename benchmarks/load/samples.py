"""What is measured while the load is steady: seconds, by what took them."""

import math
import time
from collections import defaultdict


class Samples:
    """Notes what begins within the window, however late it ends; nothing before `open_window`."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._begin = self._end = math.inf

    def open_window(self, seconds: float) -> None:
        """From now on, for so long."""
        self._begin = time.perf_counter()
        self._end = self._begin + seconds

    def note(self, what: str, begin: float) -> None:
        """Something that began then, by `time.perf_counter`, has ended now."""
        if self._begin <= begin < self._end:
            self.seconds[what].append(time.perf_counter() - begin)

    def count(self, what: str) -> int:
        return len(self.seconds[what])
