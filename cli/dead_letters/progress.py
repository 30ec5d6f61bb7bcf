"""A bar on standard error while letters are re-driven; nothing if that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import Final, TextIO

DRAW_SECONDS: Final = 0.1
BAR_CELLS: Final = 24

_ERASE_LINE: Final = "\r\x1b[2K"


class Progress:
    """Draws only when it is called."""

    def __init__(
        self, total: int, out: TextIO | None = None, seconds: Callable[[], float] = monotonic
    ) -> None:
        """`total` is the number of offsets to look at."""
        self._total = total
        self._out = sys.stderr if out is None else out
        self._seconds = seconds
        self._drawn = -DRAW_SECONDS

    def show(self, looked_at_count: int, redriven_count: int) -> None:
        """Draw the bar, unless it was drawn a moment ago."""
        now = self._seconds()
        if not self._out.isatty() or now - self._drawn < DRAW_SECONDS:
            return
        self._drawn = now
        share = looked_at_count / self._total if self._total else 1.0
        full = int(share * BAR_CELLS)
        bar = f"[{'#' * full}{'.' * (BAR_CELLS - full)}]"
        self._write(f"{_ERASE_LINE}{bar} {share:4.0%}  {redriven_count:,} letters re-driven")

    def erase(self) -> None:
        """Remove the bar, so that other lines can be printed."""
        if self._out.isatty():
            self._drawn = -DRAW_SECONDS
            self._write(_ERASE_LINE)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
