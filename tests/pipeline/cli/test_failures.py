"""The exit code and the line on standard error of each failure of a command."""

import logging
import os
import signal
from argparse import Namespace
from collections.abc import Callable

import pytest

from barnabas.client.errors import BrokerUnavailableError
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
        (BrokerUnavailableError("no broker answers"), 1, "no broker answers"),
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
def test_an_expected_error_is_one_line_and_an_exit_code(
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


def test_an_error_of_the_clean_up_after_a_stop_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_another_error_is_shown_by_the_last_line_of_its_traceback(
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
