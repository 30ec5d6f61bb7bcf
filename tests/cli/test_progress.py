"""The bar of long work: at a terminal, and nowhere else."""

from __future__ import annotations

import io

import pytest

from barnabas.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_into_a_file() -> None:
    out = io.StringIO()
    with progress("copying", 10, out) as steps:
        steps.advance(4)
    assert out.getvalue() == ""


@pytest.mark.parametrize("total", [10, None])
def test_a_bar_is_drawn_at_a_terminal_and_erased(total: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    with progress("copying", total, out) as steps:
        steps.advance(4)
    assert "copying" in out.getvalue()
    assert "4/" in out.getvalue()
    assert out.getvalue().rstrip("\r").endswith("\x1b[2K")


def test_a_hidden_bar_is_drawn_again_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    with progress("copying", 10, out) as steps:
        steps.advance(4)
        steps.hide()
        hidden_at = out.tell()
        steps.hide()
        assert out.tell() == hidden_at
        steps.advance(1)
    assert "5/10" in out.getvalue()[hidden_at:]
