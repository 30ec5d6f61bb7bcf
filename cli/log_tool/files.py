"""Files opened for reading alone, so that looking at a log needs no right to change it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class UnreadableError(Exception):
    """What was asked for cannot be looked at; the message says why, in a line."""


class ReadOnlyFile:
    """An open file (`storage.filesystem.Readable`) and the size that it had when it was opened."""

    __slots__ = ("_descriptor", "path", "size_bytes")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._descriptor).st_size

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on, fewer only at the end of the file; raises OSError."""
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def opened(path: Path) -> Generator[ReadOnlyFile]:
    """The file for as long as the block takes. Raises OSError."""
    file = ReadOnlyFile(path)
    try:
        yield file
    finally:
        file.close()


def read_if_there(path: Path) -> bytes | None:
    """The whole file; None if there is none. Raises OSError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
