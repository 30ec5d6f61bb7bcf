"""The table of commands: each has help, and help loads neither the broker nor the client nor rich."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.__main__ import command_parser, main
from barnabas.cli.commands import COMMANDS
from barnabas.cli.exit_codes import ExitCode
from barnabas.pipeline.commands import PIPELINE

PROJECT = Path(__file__).resolve().parents[3]
HEAVY = ("kio", "rich", "asyncio", "structlog", "aiofiles", "argcomplete", "logging", "json")
NAMES = [one.name for one in COMMANDS]
_LOADED = """
import sys
from barnabas.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *(name for name in HEAVY if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: barnabas {name}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], *([name] for name in NAMES)])
def test_help_loads_only_the_arguments(arguments: list[str]) -> None:
    program = _LOADED.replace("HEAVY", repr(HEAVY))
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--help"], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines()[-1] == "loaded:"


def test_a_wrong_command_line_gets_the_same_answer_if_only_its_command_has_a_parser(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command_line = ["topics", "--no-such-option"]
    for parser in (command_parser(), command_parser("topics")):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(command_line)
    answer = capsys.readouterr().err
    half = len(answer) // 2
    assert answer[:half] == answer[half:]
    assert "usage: barnabas topics" in answer


def test_an_unknown_command_is_told_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["no-such-command"])
    error = capsys.readouterr().err
    assert [name for name in (*NAMES, PIPELINE) if f"'{name}'" not in error] == []


def test_the_page_names_each_command_and_each_exit_code() -> None:
    page = (PROJECT / "docs" / "command-line.md").read_text()
    table = page.split("\n## ")[0]
    assert [name for name in NAMES if f"`{name}`" not in table] == []
    codes = page.split("## Exit codes")[1].split("\n## ")[0]
    assert [code for code in ExitCode if f"\n| {code.value} | " not in codes] == []
