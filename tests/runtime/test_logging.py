"""Logging: one line per event, in either form, also for what libraries report."""

import io
import json
import logging
from collections.abc import Generator

import pytest
import structlog

from barnabas.runtime.logging import LogFormat, configure_logging, get_logger


@pytest.fixture
def output() -> Generator[io.StringIO]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield io.StringIO()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()


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


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_library_reports_its_failures_in_the_same_form(log_format: LogFormat, output: io.StringIO) -> None:
    configure_logging(log_format, "info", output)
    try:
        raise RuntimeError("broken library")
    except RuntimeError:
        logging.getLogger("asyncio").exception("it failed: %s", "really")
    text = output.getvalue()
    assert "it failed: really" in text
    assert "broken library" in text
