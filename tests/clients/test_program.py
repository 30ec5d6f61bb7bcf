"""The lines of a program of a test."""

from __future__ import annotations

import sys

from tests.clients.polling import eventually
from tests.clients.program import running

PRINTS_A_LINE_AND_A_PART = 'import signal; print("one\\npart", end="", flush=True); signal.pause()'


def test_a_killed_program_has_printed_its_complete_lines_only() -> None:
    with running([sys.executable, "-c", PRINTS_A_LINE_AND_A_PART]) as program:
        eventually(lambda: bool(program.lines), awaited="the first line")
        assert program.is_running
    assert program.lines == ["one"]
