"""Tables as text, at a terminal and as JSON, and the values of records."""

from __future__ import annotations

import io
import json
import re

import pytest

from barnabas.cli.printing import Printer, Row

ROWS: list[Row] = [
    {"type": "state", "offset": 1, "state": "acquired", "at_ms": 0, "hidden": "h"},
    {"type": "state", "offset": 20, "state": None, "at_ms": 60_000, "hidden": "h"},
]
COLUMNS = {"offset": "OFFSET", "state": "STATE", "at_ms": "AT"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_of_known_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "60", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_table_in_a_pipe_is_aligned_with_spaces() -> None:
    out = io.StringIO()
    Printer(as_json=False, out=out).table(ROWS, COLUMNS)
    assert out.getvalue().splitlines() == [
        "  OFFSET  STATE     AT",
        "  1       acquired  1970-01-01T00:00:00.000Z",
        "  20      -         1970-01-01T00:01:00.000Z",
    ]


def test_a_table_at_a_terminal_has_colours_and_the_same_cells() -> None:
    out = Terminal()
    Printer(as_json=False, out=out).table(ROWS, COLUMNS)
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in map(plain, lines)] == ["OFFSET", "1", "20"]
    assert "\x1b[" in lines[1]
    assert plain(lines[1]).split() == ["1", "acquired", "1970-01-01T00:00:00.000Z"]


def test_a_cell_with_markup_is_printed_unchanged_at_a_terminal() -> None:
    out = Terminal()
    Printer(as_json=False, out=out).table([{"type": "t", "value": "[red]x[/red] :boom:"}], {"value": "VALUE"})
    assert "[red]x[/red] :boom:" in plain(out.getvalue())


def test_a_long_cell_is_folded_at_a_terminal_and_loses_nothing() -> None:
    out = Terminal()
    Printer(as_json=False, out=out).table([{"type": "t", "value": "x" * 100}], {"value": "VALUE"})
    assert plain(out.getvalue()).count("x") == 100
    assert max(map(len, map(plain, out.getvalue().splitlines()))) <= 60


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    Printer(as_json=False, out=out).table(ROWS, COLUMNS)
    assert "\x1b[3" not in out.getvalue()


def test_json_has_all_entries_even_at_a_terminal() -> None:
    out = Terminal()
    Printer(as_json=True, out=out).table(ROWS, COLUMNS)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == ROWS


@pytest.mark.parametrize(
    ("value", "in_a_pipe", "at_a_terminal"),
    [
        (b"text", "text", "text"),
        ("größer".encode(), "größer", "größer"),
        (None, "", ""),
        (b"\xff\x00", "\\xff\x00", "b'\\xff\\x00'"),
        (b"\x1b[2Jclear", "\x1b[2Jclear", "'\\x1b[2Jclear'"),
    ],
)
def test_values_cannot_change_the_settings_of_a_terminal(
    value: bytes | None, in_a_pipe: str, at_a_terminal: str
) -> None:
    for out, expected in ((io.StringIO(), in_a_pipe), (Terminal(), at_a_terminal)):
        Printer(as_json=False, out=out).value_line(value)
        assert out.getvalue() == f"{expected}\n"


def test_a_result_is_a_sentence_or_a_row() -> None:
    for as_json, expected in ((False, "done"), (True, '{"type": "t", "count": 1}')):
        out = io.StringIO()
        Printer(as_json=as_json, out=out).result({"type": "t", "count": 1}, "done")
        assert out.getvalue() == f"{expected}\n"


def plain(text: str) -> str:
    """The text without the sequences that colour it."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
