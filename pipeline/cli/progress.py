"""Shows progress: on a terminal a bar that is drawn again and again, elsewhere a line now and then.

A log file or a CI job gets plain lines, at most one in `LINE_SECONDS`. Nothing here runs by itself: only
`advance` and `reach` draw.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, TextIO

DRAW_SECONDS: Final = 0.1
LINE_SECONDS: Final = 10.0
BAR_CELLS: Final = 24

_ERASE_LINE: Final = "\r\x1b[2K"


class Progress:
    """The progress of one piece of work. `advance` and `reach` may be called at any rate."""

    def __init__(
        self,
        title: str,
        *,
        total: int | None,
        unit: str,
        output: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`output` None shows nothing; `clock` returns seconds."""
        self._title = title
        self._total = total
        self._unit = unit
        self._output = output
        self._clock = clock
        self._begun = self._drawn = clock()
        self._done = self._done_before = 0
        self._is_terminal = output is not None and output.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The last state stays on the screen."""
        if self._output is None:
            return
        end = _ERASE_LINE if self._is_terminal else ""
        print(f"{end}{self._text()}", file=self._output, flush=True)

    def advance(self, count: int) -> None:
        """`count` more are done."""
        self.reach(self._done + count)

    def reach(self, done: int, *, total: int | None = None) -> None:
        """`done` are done altogether; of `total`, if that has become known."""
        self._done = done
        self._total = self._total if total is None else total
        self._draw()

    def resume_from(self, done: int) -> None:
        """An earlier run did `done`: they count, but not for the rate."""
        self._done = self._done_before = done
        self._begun = self._clock()

    def _draw(self) -> None:
        now = self._clock()
        pause = DRAW_SECONDS if self._is_terminal else LINE_SECONDS
        if self._output is None or now - self._drawn < pause:
            return
        self._drawn = now
        if self._is_terminal:
            self._output.write(f"{_ERASE_LINE}{self._text()}")
            self._output.flush()
        else:
            print(self._text(), file=self._output, flush=True)

    def _text(self) -> str:
        seconds = self._clock() - self._begun
        rate = (self._done - self._done_before) / seconds if seconds > 0 else 0.0
        parts = [self._title, *self._share(), f"{rate:,.0f}/s"]
        if self._total is not None and rate > 0 and self._done < self._total:
            parts.append(f"{_clock_time((self._total - self._done) / rate)} left")
        return "  ".join(parts)

    def _share(self) -> list[str]:
        if self._total is None:
            return [f"{self._done:,} {self._unit}"]
        share = min(1.0, self._done / self._total) if self._total else 1.0
        counts = f"{share:4.0%}  {self._done:,} of {self._total:,} {self._unit}"
        if not self._is_terminal:
            return [counts]
        full = int(share * BAR_CELLS)
        return [f"[{'#' * full}{'.' * (BAR_CELLS - full)}]", counts]


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
