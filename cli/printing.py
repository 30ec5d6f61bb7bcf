"""Prints rows as text, as a table, or as lines of JSON. All commands print with it.

A row is a mapping; its first entry, `type`, is its kind. As text an entry is printed with its name; times
(names that end with `_ms`) are dates, and None is omitted. On a terminal rich prints the tables (`terminal`);
elsewhere the columns are aligned with spaces.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO, cast

Value = object
"""Any value that JSON can represent."""
Row = Mapping[str, Value]

_TEXT_CHARACTERS_MAX = 120
_TOLD_BY_TYPE = frozenset({"type"})
_TOLD_ELSEWHERE = frozenset({"type", "last_offset", "crc"})


class Printer:
    """Prints each row at once."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out = out or sys.stdout
        self._file: Value = None

    def heading(self, row: Row) -> None:
        """Print a row about a file. The following rows belong to it; as JSON each of them names the file."""
        self._file = row.get("file")
        if self.as_json:
            self._print(json.dumps(row, ensure_ascii=False))
        else:
            words = as_words({name: value for name, value in row.items() if name != "file"})
            self._print(f"\n{row['file']}  ({words})")

    def row(self, row: Row, *, inner: bool = False) -> None:
        """Print a row of the file; an `inner` one belongs to the row before it."""
        if self.as_json:
            named = (
                row
                if self._file is None or "file" in row
                else {"type": row["type"], "file": self._file, **row}
            )
            self._print(json.dumps(named, ensure_ascii=False))
        else:
            self._print(("    " if inner else "  ") + as_words(row))

    def table(self, rows: Sequence[Row], columns: Mapping[str, str]) -> None:
        """Print a table; `columns` are the entries to print and their headings. JSON has all entries."""
        if self.as_json:
            for row in rows:
                self._print(json.dumps(row, ensure_ascii=False))
            return
        headings = list(columns.values())
        cells = [[_cell(name, row[name]) for name in columns] for row in rows]
        if self.is_terminal:
            from barnabas.cli.terminal import print_table

            print_table(self._out, headings, cells)
            return
        lines = [headings, *cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
            self._print(("  " + "  ".join(padded)).rstrip())

    def result(self, row: Row, sentence: str) -> None:
        """Print the result of a change: the row as JSON, the sentence as text."""
        self._print(json.dumps(row, ensure_ascii=False) if self.as_json else sentence)

    def value_line(self, value: bytes | None) -> None:
        """Print a record's value as a line of text; bytes that are no UTF-8 are escaped.

        On a terminal control characters are escaped, too, because they could change its settings.
        """
        if self.is_terminal:
            self._print(as_text(value) or "")
        else:
            self._print((value or b"").decode("utf-8", "backslashreplace"))

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal."""
        return self._out.isatty()

    def update(self, text: str) -> None:
        """Write a part of a line that changes, on a terminal."""
        self._out.write(text)
        self._out.flush()

    def flush(self) -> None:
        """Pass everything on to the reader of the output."""
        self._out.flush()

    def text(self, line: str = "") -> None:
        """Print a line of text, but not as JSON."""
        if not self.as_json:
            self._print(line)

    def _print(self, line: str) -> None:
        print(line, file=self._out)


def as_words(row: Row) -> str:
    """The row as one line: its type and its entries, without empty ones. Two ends of a range are one
    entry.
    """
    words = [str(row["type"])]
    for name, value in row.items():
        if name == "base_offset" and "last_offset" in row:
            words.append(f"offsets {value}-{row['last_offset']}")
        elif name not in _left_out(row) and value is not None and value is not False and value != []:
            words.append(_word(name, value))
    return "  ".join(words)


def _left_out(row: Row) -> frozenset[str]:
    """The entries that other entries make redundant."""
    if row.get("base_timestamp_ms", 0) == row.get("max_timestamp_ms"):
        return _TOLD_ELSEWHERE | {"base_timestamp_ms"}
    return _TOLD_ELSEWHERE if "base_offset" in row else _TOLD_BY_TYPE


def _word(name: str, value: Value) -> str:
    label = name.removesuffix("_ms").removesuffix("_bytes").replace("_", " ")
    return label if value is True else f"{label} {_cell(name, value)}"


def _cell(name: str, value: Value) -> str:
    if value is None:
        return "-"
    if name.endswith("_ms") and isinstance(value, int):
        return as_time(value)
    if isinstance(value, str):
        return value if len(value) <= _TEXT_CHARACTERS_MAX else value[: _TEXT_CHARACTERS_MAX - 3] + "..."
    if isinstance(value, dict):
        entries: dict[str, Value] = cast("Any", value)
        return "{" + ", ".join(f"{key}: {_cell(key, entry)}" for key, entry in entries.items()) + "}"
    if isinstance(value, list):
        items: list[Value] = cast("Any", value)
        return "[" + ", ".join(_cell("", entry) for entry in items) + "]"
    return str(value)


def bytes_entry(name: str, data: bytes | None) -> dict[str, Value]:
    """An entry of a row: text under the name itself; other bytes in base64 under the name with `_base64`."""
    if data is None:
        return {name: None}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}
    return {name: text}


def as_text(data: bytes | None) -> str | None:
    """Text unchanged; other bytes, and text with control characters, as a literal of Python."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return repr(data)
    return text if text.isprintable() else repr(text)


def as_time(timestamp_ms: int) -> str:
    """The time in UTC to the millisecond; the number itself if it is no valid date, and - for -1."""
    if timestamp_ms == -1:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
