"""Tables and progress bars on a terminal, by rich. Nothing else imports rich, and only for a terminal."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

_STYLES: Final = {
    "available": "cyan",
    "acquired": "yellow",
    "acknowledged": "green",
    "archiving": "red",
    "archived": "red",
    "ok": "green",
    "warning": "yellow",
    "failure": "bold red",
}
"""The words that have a colour as the whole of a cell: states of records, and results of checks."""


def print_table(out: TextIO, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows below their headings. Long cells are folded to the width of the terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(file=out, highlight=False).print(table)


@contextmanager
def progress_bar(out: TextIO, work: str, total: int | None) -> Generator[Bar]:
    """Draw a bar during the block; `total` is None if the number of steps is unknown. It is erased then."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=out), transient=True) as progress:
        yield Bar(progress, work, total)


class Bar:
    """The steps of some work, drawn by rich."""

    def __init__(self, progress: Progress, work: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(work, total=total)

    def advance(self, count: int) -> None:
        self._progress.start()
        self._progress.advance(self._task, count)

    def hide(self) -> None:
        self._progress.stop()
