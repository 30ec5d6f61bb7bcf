"""`barnabas serve` as a process of its own: the last line of its log, and the libraries that it loads."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path


def test_the_last_line_of_the_log_says_that_the_broker_has_stopped(tmp_path: Path) -> None:
    line = json.loads(log_of_a_broker(tmp_path).splitlines()[-1])
    assert (line["level"], line["event"]) == ("info", "stopped")
    assert line["data"] == str(tmp_path / "data")


def test_a_broker_loads_neither_rich_nor_hypothesis(tmp_path: Path) -> None:
    log = log_of_a_broker(tmp_path, "-X", "importtime")
    loaded = {line.rpartition("|")[2].strip() for line in log.splitlines() if line.startswith("import time:")}
    assert {"structlog.dev", "barnabas.cli.process.serving"} <= loaded
    inner_modules = {"hypothesis.core", "rich.segment"}  # a failed import is in the list, too
    assert not inner_modules & loaded


def log_of_a_broker(folder: Path, *python_options: str) -> str:
    """The standard error of a broker on `folder/data` that ends at SIGTERM as soon as it serves."""
    options = ["--listen", "127.0.0.1:0", "--data-dir", str(folder / "data"), "--log-format", "json"]
    command = [sys.executable, *python_options, "-m", "barnabas", "serve", *options]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    return (folder / "log").read_text()
