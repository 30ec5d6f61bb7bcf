"""`barnabas serve` as a process of its own: the last line of its log."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path


def test_the_last_line_of_the_log_says_that_the_broker_has_stopped(tmp_path: Path) -> None:
    options = ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--log-format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    line = json.loads(log.splitlines()[-1])
    assert (process.returncode, line["level"], line["event"]) == (0, "info", "stopped")
    assert line["data"] == str(tmp_path)
