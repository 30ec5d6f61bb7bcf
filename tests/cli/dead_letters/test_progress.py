"""The bar on standard error: only on a terminal, and not more often than eyes can see."""

from __future__ import annotations

import io

from barnabas.cli.dead_letters.progress import DRAW_SECONDS, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_gets_a_bar_that_replaces_itself() -> None:
    out, clock = Terminal(), Clock()
    progress = Progress(200, out, clock)
    progress.show(50, 1_234)
    assert out.getvalue() == "\r\x1b[2K[######..................]  25%  1,234 letters re-driven"


def test_the_bar_is_drawn_at_intervals() -> None:
    out, clock = Terminal(), Clock()
    progress = Progress(200, out, clock)
    for count in range(3):
        progress.show(count, count)
    clock.now += 2 * DRAW_SECONDS
    progress.show(200, 3)
    assert out.getvalue().count("letters") == 2
    assert out.getvalue().endswith("[########################] 100%  3 letters re-driven")


def test_the_bar_is_erased_before_other_lines() -> None:
    out = Terminal()
    progress = Progress(0, out, Clock())
    progress.show(0, 0)
    progress.erase()
    progress.show(0, 0)
    assert out.getvalue().count("100%") == 2
    assert "\r\x1b[2K\r\x1b[2K" in out.getvalue()


def test_a_file_gets_nothing() -> None:
    out = io.StringIO()
    progress = Progress(10, out, Clock())
    progress.show(5, 5)
    progress.erase()
    assert out.getvalue() == ""
