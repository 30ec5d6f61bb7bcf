"""Opens files only for reading, so that inspecting a log needs no write permission."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class UnreadableError(Exception):
    """A path cannot be inspected; the message is one line with the reason."""


class ReadOnlyFile:
    """An open file (`storage.filesystem.Readable`), and its size when it was opened."""

    __slots__ = ("_descriptor", "path", "size_bytes")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._descriptor).st_size

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file. Raises OSError."""
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def opened(path: Path) -> Generator[ReadOnlyFile]:
    """The file, open during the block. Raises OSError."""
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
