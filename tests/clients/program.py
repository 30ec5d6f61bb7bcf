"""A program of a test as a child process: the lines that it prints, and signals to it."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Program:
    """A running program. Call `kill` at the end."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        """The complete lines that it has printed so far."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def has_failed(self) -> bool:
        """Whether it has ended by itself, with an error."""
        return (self._process.poll() or 0) > 0

    @property
    def is_stopped(self) -> bool:
        """Whether SIGSTOP has stopped it."""
        return Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"

    def go_on(self) -> None:
        """Continue after SIGSTOP."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                # A killed program may leave a part of its last line.
                if line.endswith("\n"):
                    self.lines.append(line.removesuffix("\n"))


@contextmanager
def running(command: Sequence[str | Path]) -> Generator[Program]:
    """Kills it at the end."""
    program = Program(command)
    try:
        yield program
    finally:
        program.kill()
