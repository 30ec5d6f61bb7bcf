"""The commands that a page shows with their output: a line that begins with `$`, and the lines below it.

Commands of `barnabas` run in this process, which is quicker; other programs and pipes run in a shell.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from barnabas.__main__ import main

_OUTPUT_LINE = r"^    (?!\$ ).*\n"
_SESSION = re.compile(rf"^    \$ (.+)\n((?:{_OUTPUT_LINE}|^\n(?={_OUTPUT_LINE}))*)", re.MULTILINE)
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\d+\.\d s"), "LEFT"),
    (re.compile(r'("\w+_ms": )\d+'), r"\1MS"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "UUID"),
    (re.compile(r"(?<=\s)[\w-]{22}(?=\s)"), "MEMBER"),
)


def sessions(page: Path) -> list[tuple[str, str]]:
    """Each command of the page, and its output."""
    found = _SESSION.findall(page.read_text(encoding="utf-8"))
    return [(command, re.sub(r"^    ", "", output, flags=re.MULTILINE)) for command, output in found]


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and both outputs."""
    if not command.startswith("barnabas ") or "|" in command or "&&" in command:
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr
    _, *arguments = shlex.split(command)
    capsys.readouterr()
    exit_code = main(arguments)
    output = capsys.readouterr()
    return exit_code, output.out + output.err


def words(output: str) -> list[list[str]]:
    """Those of each line that has any, without times and ids."""
    for pattern, word in _VARYING:
        output = pattern.sub(word, output)
    return [line.split() for line in output.splitlines() if line.strip()]
