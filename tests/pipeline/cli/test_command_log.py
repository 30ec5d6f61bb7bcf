"""The log file of a command: output of other processes, our own log, its bound, and when it is deleted."""

import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.pipeline.cli import command_log
from barnabas.pipeline.cli.command_log import CommandLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CommandLog]:
    opened = CommandLog("audit", str(tmp_path / "audit.log"))
    yield opened
    opened.close(keep=False)


def printed_by(log: CommandLog, text: str) -> None:
    pipe = log.open_pipe()
    subprocess.run(["printf", "%s", text], stdout=pipe, check=True)
    os.close(pipe)
    log.drain()


def test_the_output_of_a_process_is_in_the_file_as_it_was_printed(log: CommandLog) -> None:
    printed_by(log, "one\n  two\nthree")
    assert log.lines() == ["one", "  two", "three"]


def test_warnings_of_libraries_are_in_the_file_and_not_on_the_screen(
    log: CommandLog, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("py4j").warning("lost")
    assert "WARNING py4j: lost" in log.lines()[0]
    assert capsys.readouterr().err == ""


def test_an_error_is_in_the_file_with_its_traceback_and_that_of_java(log: CommandLog) -> None:
    try:
        raise OSError("no space")
    except OSError as error:
        log.add(error, "java.io.IOException: no space")
    text = "\n".join(log.lines())
    assert "java.io.IOException: no space" in text
    assert "Traceback" in text


def test_two_files_bound_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_log, "FILE_BYTES_MAX", 1_000)
    log = CommandLog("audit", str(tmp_path / "audit.log"))
    printed_by(log, "a line of a stream that runs for years\n" * 500)
    log.close(keep=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.log", "audit.log.1"]
    assert all(path.stat().st_size <= 1_000 for path in tmp_path.iterdir())


@pytest.mark.parametrize("keep", [True, False])
def test_a_temporary_file_is_kept_only_if_it_is_needed(
    keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log = CommandLog("audit", None)
    printed_by(log, "a line\n")
    assert log.path.parent == tmp_path
    log.close(keep=keep)
    assert log.path.exists() is keep


def test_a_file_that_the_user_named_stays(tmp_path: Path) -> None:
    CommandLog("audit", str(tmp_path / "audit.log")).close(keep=False)
    assert (tmp_path / "audit.log").exists()
