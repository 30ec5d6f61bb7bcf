"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield _line(heads)
    yield "|" + "---|" * len(heads)
    for row in rows:
        assert len(row) == len(heads), row
        yield _line(row)


def _line(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell.replace('|', chr(92) + '|')} " if cell else " " for cell in cells) + "|"


def code(text: str) -> str:
    """`text` as code; empty if it is empty."""
    return f"`{text}`" if text else ""
