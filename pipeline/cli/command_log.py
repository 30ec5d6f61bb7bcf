"""The log file of a command: everything that Spark and its workers print, kept for the case of a failure.

Spark's JVM and its Python workers print warnings and stack traces, also of failures that Spark survives. A
person needs them only if the command fails. So they go to a file. A temporary file is deleted if the command
succeeds.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 8 * 1024 * 1024
"""At this size the file is renamed to `<name>.1`, replacing an older one, and a new file is begun."""
DRAIN_SECONDS: Final = 2.0
"""How long to wait for the last output of a process that has ended."""

_PRINTED: Final = "barnabas.printed"
"""The logger of lines that other processes print."""


class CommandLog:
    """One log file. `close` it once."""

    def __init__(self, command: str, path: str | None) -> None:
        """`path` None: a new file in the directory for temporary files. Raises OSError."""
        self._is_temporary = path is None
        self.path = Path(path).absolute() if path is not None else _new_file(command)
        self._handler = RotatingFileHandler(
            self.path, maxBytes=FILE_BYTES_MAX, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
        self._handler.setFormatter(_Format())
        self._printed = logging.getLogger(_PRINTED)
        self._printed.propagate = False
        self._printed.setLevel(logging.INFO)
        self._loggers = (logging.getLogger(), self._printed)
        for logger in self._loggers:
            logger.addHandler(self._handler)
        self._reader: threading.Thread | None = None

    def open_pipe(self) -> int:
        """A file descriptor for a process to print to. The caller closes its own copy. Call it once."""
        read_end, write_end = os.pipe()
        self._reader = threading.Thread(target=self._copy, args=(read_end,), name="command log", daemon=True)
        self._reader.start()
        return write_end

    def drain(self) -> None:
        """Wait until the output of processes that have ended is in the file."""
        if self._reader is not None:
            self._reader.join(DRAIN_SECONDS)

    def add(self, error: BaseException, java_trace: str) -> None:
        """Logs an error with its tracebacks."""
        logging.getLogger(__name__).error("The command failed.\n%s", java_trace, exc_info=error)

    def lines(self) -> list[str]:
        """The content so far."""
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()

    def close(self, *, keep: bool) -> None:
        """Closes the file. Deletes a temporary file unless `keep` is set."""
        for logger in self._loggers:
            logger.removeHandler(self._handler)
        self._handler.close()
        if self._is_temporary and not keep:
            for path in (self.path, self.path.with_name(f"{self.path.name}.1")):
                path.unlink(missing_ok=True)

    def _copy(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as printed, suppress(ValueError):
            for line in printed:
                self._printed.info("%s", line.rstrip("\n"))


class _Format(logging.Formatter):
    """Lines of other processes stay unchanged; this process's lines get the time and the logger's name."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name == _PRINTED else super().format(record)


def _new_file(command: str) -> Path:
    descriptor, path = tempfile.mkstemp(prefix=f"barnabas-{command}-", suffix=".log")
    os.close(descriptor)
    return Path(path)
