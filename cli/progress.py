"""The progress of long work on standard error: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Steps(Protocol):
    """The progress of some work."""

    def advance(self, count: int) -> None:
        """This many more steps are done."""

    def hide(self) -> None:
        """Erase the bar until the next step, so that other lines can be printed."""


class _Unseen:
    def advance(self, count: int) -> None:
        """Nothing is drawn."""

    def hide(self) -> None:
        """Nothing was drawn."""


@contextmanager
def progress(work: str, total: int | None, out: TextIO | None = None) -> Generator[Steps]:
    """Show the progress of the block to a user at a terminal; `total` is None if it is unknown."""
    stream = out or sys.stderr
    if not stream.isatty():
        yield _Unseen()
        return
    from barnabas.cli.terminal import progress_bar

    with progress_bar(stream, work, total) as steps:
        yield steps
