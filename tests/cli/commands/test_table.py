"""The table of commands: each has help, and help loads neither the broker nor the client nor rich."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.__main__ import command_parser, main
from barnabas.cli.commands import COMMANDS
from barnabas.cli.exit_codes import ExitCode
from barnabas.pipeline.commands import PIPELINE
from tests.cli.commands.parsers import parsers_in

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


def test_the_page_names_each_command_with_its_actions_and_each_exit_code() -> None:
    page = (PROJECT / "docs" / "command-line.md").read_text()
    rows = [line for line in page.split("\n## ")[0].splitlines() if line.startswith("| `")]
    assert [name for name in NAMES if not row_of(name, rows)] == []
    missing = [
        f"{name} {action}"
        for name, parser in parsers_in(command_parser()).items()
        for action in parsers_in(parser)
        if not re.search(rf"\b{action}\b", row_of(name, rows))
    ]
    assert missing == []
    codes = page.split("## Exit codes")[1].split("\n## ")[0]
    assert [code for code in ExitCode if f"\n| {code.value} | " not in codes] == []


def row_of(name: str, rows: Sequence[str]) -> str:
    """The row of the table whose first cell names the command; empty if there is none."""
    return next((row for row in rows if f"`{name}`" in row.split(" | ")[0]), "")


@pytest.mark.parametrize(
    "command_line",
    [
        "topics delete orders",
        "groups reset workers --to-latest",
        "config delete topic orders retention.ms",
        "dlq redrive dlq.orders",
        "log dump {directory}/orders-0",
    ],
)
def test_an_action_without_work_of_its_own_does_not_get_that_of_another(
    command_line: str, tmp_path: Path
) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").touch()
    given = command_line.format(directory=tmp_path)
    options = command_parser().parse_args(given.split())
    options.action = "no-such-action"
    with pytest.raises((AssertionError, KeyError), match="no-such-action"):
        options.run(options)
