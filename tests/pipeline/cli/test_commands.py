"""`barnabas pipeline`: which commands there are, what each ends with, and what is loaded for it."""

import logging
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

import pytest

from barnabas.__main__ import main
from barnabas.client.errors import BrokerUnavailableError
from barnabas.pipeline.cli.commands import COMMANDS, Command
from barnabas.pipeline.cli.failures import EXIT_STOPPED, run_reporting_failures
from barnabas.pipeline.errors import OptionError, PipelineError

OPTIONS = Namespace(resume="Run it again.")


def raising(error: BaseException) -> Callable[[Namespace], int]:
    def run(_options: Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (OptionError("--topics", "is needed"), 2, "--topics: is needed"),
        (PipelineError("The lake is dry.\nAll of it."), 1, "The lake is dry."),
        (FileNotFoundError(2, "No such file or directory", "/lake"), 1, "/lake: No such file or directory."),
        (TimeoutError("too late"), 1, "too late."),
        (BrokerUnavailableError("nobody answers"), 1, "nobody answers"),
        (KeyboardInterrupt(), EXIT_STOPPED, "Stopped. Run it again."),
        (
            ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"),
            1,
            "The pipeline needs pyspark: run pip install -e '.[spark]' in the checkout of Barnabas.",
        ),
        (
            ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"),
            1,
            "The pipeline needs pyarrow: run pip install -e '.[spark]' in the checkout of Barnabas.",
        ),
    ],
)
def test_what_went_wrong_is_one_line_and_an_exit_code(
    error: BaseException, exit_code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_reporting_failures(raising(error), OPTIONS) == exit_code
    assert capsys.readouterr() == ("", f"barnabas: {line}\n")


@pytest.mark.parametrize(
    "bug", [AssertionError("ours"), KeyError("ours"), ModuleNotFoundError("typo", name="typo")]
)
def test_a_bug_shows_its_traceback(bug: Exception) -> None:
    with pytest.raises(type(bug)):
        run_reporting_failures(raising(bug), OPTIONS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_a_command_in_order(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    def run(_options: Namespace) -> int:
        try:
            os.kill(os.getpid(), number)
        finally:
            logging.getLogger("py4j").error("interrupted")
        return 0

    before = signal.getsignal(number)
    assert run_reporting_failures(run, OPTIONS) == EXIT_STOPPED
    assert capsys.readouterr().err == "barnabas: Stopped. Run it again.\n"
    assert signal.getsignal(number) is before


def test_an_error_of_the_clean_up_after_a_stop_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    def run(_options: Namespace) -> int:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionRefusedError(111, "Connection refused")

    assert run_reporting_failures(run, OPTIONS) == EXIT_STOPPED
    assert capsys.readouterr().err == "barnabas: Stopped. Run it again.\n"


def test_the_notes_of_an_error_are_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = PipelineError("The lake is dry.")
    error.add_note("Details: /tmp/lake.log")
    assert run_reporting_failures(raising(error), OPTIONS) == 1
    assert capsys.readouterr().err == "barnabas: The lake is dry. Details: /tmp/lake.log\n"


def test_an_error_out_of_sparks_workers_is_the_pipelines_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    class PythonException(Exception):  # noqa: N818  named as PySpark names it
        __module__ = "pyspark.errors.exceptions.captured"

    text = (
        "Job aborted due to stage failure:\nTraceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "barnabas.pipeline.decoding.errors.BatchError: The batch at offset 7 is damaged\n\n"
        "\tat org.apache.spark.api.python.BasePythonRunner\n"
    )
    assert run_reporting_failures(raising(PythonException(text)), OPTIONS) == 1
    assert capsys.readouterr().err == "barnabas: The batch at offset 7 is damaged\n"


def test_an_error_that_is_not_the_pipelines_own_is_told_by_the_last_line_of_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class StreamingQueryException(Exception):  # noqa: N818  named as PySpark names it
        __module__ = "pyspark.errors.exceptions.captured"

    text = (
        "[STREAM_FAILED] Query terminated with exception: An exception was raised by the Python Proxy. "
        "Return Message: Traceback (most recent call last):\n"
        '  File "clientserver.py", line 644, in _call_proxy\n'
        "    return_value = getattr(self.pool[obj_id], method)(*params)\n"
        "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "pyspark.errors.exceptions.captured.PythonException: Thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "expressions.py", line 1, in parse\n'
        "ZeroDivisionError: division by zero\n"
        " SQLSTATE: 39000\n=== Streaming Query ===\nCurrent State: ACTIVE\n"
    )
    assert run_reporting_failures(raising(StreamingQueryException(text)), OPTIONS) == 1
    assert capsys.readouterr().err == "barnabas: Spark failed: ZeroDivisionError: division by zero\n"


def test_a_wrong_option_that_a_worker_of_sparks_finds_is_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class StreamingQueryException(Exception):  # noqa: N818  named as PySpark names it
        __module__ = "pyspark.errors.exceptions.captured"

    text = "Traceback:\nbarnabas.pipeline.errors.OptionError: startingofsets: there is no such option\n"
    assert run_reporting_failures(raising(StreamingQueryException(text)), OPTIONS) == 2
    assert capsys.readouterr().err == "barnabas: startingofsets: there is no such option\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_tells_its_arguments(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", command.name, "--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    for argument in ("--json", "--dry-run", "--quiet", "--master", "--conf"):
        assert argument in output


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_says_how_to_resume(command: Command) -> None:
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


def test_without_the_extra_a_command_says_what_to_install() -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert "pip install -e '.[spark]'" in ended.stderr
