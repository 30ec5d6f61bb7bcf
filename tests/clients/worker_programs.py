"""Workers in processes of their own, that SIGTERM ends: their output, and the group that they leave."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.__main__ import main
from tests.clients.broker_process import BrokerProcess


@contextmanager
def started_program(command: Sequence[str], folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """The command in a process of its own; the files `output` and `errors` have its streams."""
    with (folder / "output").open("wb") as out, (folder / "errors").open("wb") as err:
        worker = subprocess.Popen(command, stdout=out, stderr=err)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def printed_by(folder: Path) -> str:
    """The output of the program so far."""
    return (folder / "output").read_text()


def errors_of(folder: Path) -> str:
    """The program's lines on standard error so far."""
    return (folder / "errors").read_text()


def description(broker: BrokerProcess, group: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The lines of `barnabas groups describe`."""
    capsys.readouterr()
    assert main(["groups", "describe", group, "--bootstrap", broker.address]) == 0
    return capsys.readouterr().out
