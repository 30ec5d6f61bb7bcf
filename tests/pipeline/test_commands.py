"""`barnabas pipeline`: its commands, their arguments, and the modules that are loaded for them."""

import subprocess
import sys
from argparse import ArgumentParser

import pytest

from barnabas.__main__ import main
from barnabas.pipeline.commands import COMMANDS, Command


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_lists_its_arguments(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", command.name, "--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    for argument in ("--json", "--dry-run", "--quiet", "--master", "--conf"):
        assert argument in output


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_explains_how_to_resume(command: Command) -> None:
    parser = ArgumentParser()
    command.load().add_arguments(parser)
    assert parser.get_default("resume")


def test_the_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "--help"])
    output = capsys.readouterr().out
    assert all(command.name in output for command in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["pipeline"],
        ["pipeline", "nonsense"],
        ["pipeline", "export", "--topics", "orders"],
        ["pipeline", "export", "--topics", "a,,b", "--servers", "h:1", "--to", "nowhere"],
        ["pipeline", "restore", "--from", "out", "--replication-factor", "many"],
        ["pipeline", "audit", "data", "--groups", "a,,b"],
    ],
)
def test_wrong_arguments_are_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--servers", "h:1", "--slice-offsets", "0"], "--slice-offsets: 0 is not 1 or more"),
        (["--servers", "h:1", "--option", "x"], "--option: 'x' is not NAME=VALUE"),
        (["--servers", "h:1", "--from-logs"], "--from-logs: needs a --data-dir"),
        (["--servers", "h:port"], "servers: "),
        (["--servers", "h:1", "--option", "grup=x"], "grup: there is no such option"),
    ],
)
def test_options_that_make_no_sense_are_named(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "export", "--topics", "orders", "--to", "nowhere", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"barnabas: {complaint}")
    assert output.err.count("\n") == 1


LOADED = """
import sys
from barnabas.__main__ import main
try:
    main({arguments})
except SystemExit:
    pass
heavy = ("kio", "pyspark", "pyarrow", "asyncio", "barnabas.client", "barnabas.protocol")
print("loaded:", *(name for name in heavy if name in sys.modules))
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["pipeline", "--help"], ["pipeline", "export", "--help"]]
)
def test_help_and_version_load_neither_broker_nor_spark(arguments: list[str]) -> None:
    code = LOADED.format(arguments=arguments)
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "loaded:"


WITHOUT = """
import sys
sys.modules["pyarrow"] = sys.modules["pyspark"] = None
from barnabas.__main__ import main
sys.exit(main(["pipeline", "restore", "--servers", "127.0.0.1:1", "--from", "nowhere"]))
"""


def test_without_the_extra_a_command_names_the_packages_to_install() -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert "pip install -e '.[spark]'" in ended.stderr
