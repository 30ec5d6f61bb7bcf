"""The process of a broker for tests: starts it on free ports, restarts it on the same data, and ends it.

The broker ends with this process in every case, because it holds the other end of the broker's standard
input.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

START_SECONDS_MAX: Final = 60.0
"""The longest start. It takes less than a second, but the machine may be very busy."""
STOP_SECONDS_MAX: Final = 30.0
"""The longest orderly end; after that the process is killed."""

_LOG_LINES_SHOWN: Final = 20


class BrokerDied(Exception):  # noqa: N818  named after its event
    """The broker's process did not start, or has ended; the message has the end of its log."""


class Addresses(NamedTuple):
    """The addresses of a running broker."""

    bootstrap_servers: str
    control: str


class BrokerProcess:
    """One broker process at a time, over one data directory."""

    def __init__(self, directory: Path, log_path: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        self._log_path = log_path
        self._settings = settings
        self._listen = "127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None
        self.token = secrets.token_urlsafe(32)

    @property
    def pid(self) -> int:
        """The process id. Raises BrokerDied if it does not run."""
        return self._running().pid

    def log(self) -> str:
        """The lines that the broker has logged."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self) -> Addresses:
        """Start the broker, and return when it serves. A later start has the same address. Raises
        BrokerDied.
        """
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
            )
        try:
            line = self._first_line()
        except BaseException:
            self.kill()
            raise
        ready = cast("dict[str, str]", json.loads(line))
        self._listen = ready["bootstrap_servers"]
        return Addresses(ready["bootstrap_servers"], ready["control"])

    def stop(self) -> None:
        """End it in order; it is killed if that takes too long."""
        process = self._process
        if process is None:
            return
        cast("IO[bytes]", process.stdin).close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
        self._ended(process)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash does."""
        process = self._process
        if process is not None:
            process.kill()
            cast("IO[bytes]", process.stdin).close()
            self._ended(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        cast("IO[bytes]", process.stdout).close()
        self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise BrokerDied(self._obituary())
        return self._process

    def _command(self) -> list[str]:
        settings = [f"--set={name}={value}" for name, value in self._settings.items()]
        directory = f"--data-dir={self._directory}"
        return [sys.executable, "-m", "barnabas", "testing", f"--listen={self._listen}", directory, *settings]

    def _environment(self) -> dict[str, str]:
        """Settings in the environment belong to another broker."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("BARNABAS_", "KAFKA_"))
        }
        return {**inherited, "BARNABAS_TESTING_TOKEN": self.token}

    def _first_line(self) -> bytes:
        process = self._running()
        output = cast("IO[bytes]", process.stdout)
        readable, _, _ = select.select([output], [], [], START_SECONDS_MAX)
        line = output.readline() if readable else b""
        if not line.endswith(b"\n"):
            raise BrokerDied(self._obituary())
        return line

    def _obituary(self) -> str:
        lines = self.log().splitlines()[-_LOG_LINES_SHOWN:]
        return "The broker does not run. Its log ends with:\n" + "\n".join(lines or ["(nothing)"])
