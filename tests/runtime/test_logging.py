"""The log: one line per event in both formats, also for errors of the event loop, warnings, exceptions."""

import asyncio
import gc
import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Generator

import pytest
import structlog

from barnabas.runtime.logging import (
    LogFormat,
    catch_everything_else,
    configure_logging,
    get_logger,
    log_errors_of,
)


@pytest.fixture
def output() -> Generator[io.StringIO]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield io.StringIO()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts Python's hooks back after the test."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)


def test_a_json_line_has_time_level_subject_and_the_events_words(output: io.StringIO) -> None:
    configure_logging("json", "info", output)
    get_logger("server").info("connection refused", client="/127.0.0.1")
    line = json.loads(output.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "connection refused",
        "level": "info",
        "subject": "server",
        "client": "/127.0.0.1",
    }


def test_lines_below_the_level_are_left_out(output: io.StringIO) -> None:
    configure_logging("json", "warning", output)
    get_logger("server").info("connection opened")
    assert output.getvalue() == ""


def test_a_console_line_is_plain_text_where_there_is_no_terminal(output: io.StringIO) -> None:
    configure_logging("console", "info", output)
    get_logger("server").info("connection refused", client="/127.0.0.1")
    assert "connection refused" in output.getvalue()
    assert "\x1b" not in output.getvalue()


async def fail() -> None:
    raise RuntimeError("a bug")


async def forget_a_failed_task() -> None:
    log_errors_of(asyncio.get_running_loop())
    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    del task
    gc.collect()
    await asyncio.sleep(0)


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_an_exception_that_nothing_retrieved_is_logged_in_the_same_format(
    log_format: LogFormat, output: io.StringIO
) -> None:
    configure_logging(log_format, "info", output)
    asyncio.run(forget_a_failed_task())
    text = output.getvalue()
    assert "Task exception was never retrieved" in text
    assert "RuntimeError: a bug" in text


def test_an_error_of_the_loop_has_its_context_as_fields(output: io.StringIO) -> None:
    configure_logging("json", "info", output)
    asyncio.run(forget_a_failed_task())
    line = json.loads(output.getvalue())
    assert (line["level"], line["subject"]) == ("error", "asyncio")
    assert "coro=<fail()" in line["future"]


async def report_to_the_loop(context: dict[str, object]) -> None:
    loop = asyncio.get_running_loop()
    log_errors_of(loop)
    loop.call_exception_handler(context)


def test_an_error_of_the_loop_without_a_message_or_an_exception_is_logged(output: io.StringIO) -> None:
    configure_logging("json", "info", output)
    asyncio.run(report_to_the_loop({"event": 1}))
    assert json.loads(output.getvalue())["event"] == "unhandled exception in the event loop"


def test_the_standard_librarys_loggers_print_nothing(
    output: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.root.handlers.clear()
    configure_logging("console", "info", output)
    asyncio.run(report_to_the_loop({"message": "reported"}))
    logging.getLogger("asyncio").error("it failed")
    logging.getLogger("library").warning("something is odd")
    assert capsys.readouterr() == ("", "")
    assert len(output.getvalue().splitlines()) == 1


@pytest.mark.usefixtures("hooks")
def test_a_warning_of_python_is_logged_with_its_place(output: io.StringIO) -> None:
    configure_logging("json", "info", output)
    catch_everything_else()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        catch_everything_else()
        warnings.warn("This is deprecated.", UserWarning, stacklevel=1)
    line = json.loads(output.getvalue())
    assert (line["level"], line["event"]) == ("warning", "This is deprecated.")
    assert line["category"] == "UserWarning"
    assert line["place"].partition(":")[0] == __file__


@pytest.mark.usefixtures("hooks")
def test_an_uncaught_exception_in_a_thread_is_logged(output: io.StringIO) -> None:
    configure_logging("json", "info", output)
    catch_everything_else()
    thread = threading.Thread(target=asyncio.run, args=(fail(),))
    thread.start()
    thread.join()
    line = json.loads(output.getvalue())
    assert (line["level"], line["event"]) == ("critical", "uncaught exception")
    assert "RuntimeError: a bug" in line["exception"]
