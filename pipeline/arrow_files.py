"""Files in one directory on any file system that PyArrow knows: local, S3, GCS, HDFS, Azure.

A file has its name only once it is whole: it is written under another name and then moved. On a local file
system it is durable before the move, and the move before the caller goes on, so a power failure leaves no
damaged file under its final name. Other file systems make a closed file durable themselves.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from barnabas.pipeline.errors import PipelineError, install_hint


class OutputFile(Protocol):
    """A file that is being written."""

    def write(self, data: bytes, /) -> int: ...


class ArrowFiles:
    """The files below one directory, which is made at its first use. OSError for failed calls."""

    def __init__(self, location: str) -> None:
        """`location` is a path or a URI. Raises ValueError, NotImplementedError and OSError for others."""
        is_uri = "://" in location or location.startswith("file:")
        uri = location if is_uri else Path(location).absolute().as_uri()
        self._fs = _pyarrow_fs()
        self.system, root = self._fs.FileSystem.from_uri(uri)
        self._root: str = root.rstrip("/")

    def path(self, name: str) -> str:
        """The path of a file for the file system."""
        return f"{self._root}/{name}"

    def size_bytes(self, name: str) -> int | None:
        """The size of a file; None if there is none."""
        (found,) = self.system.get_file_info([self.path(name)])
        return found.size if found.is_file else None

    def names(self) -> list[str]:
        """The names of all files, ascending; none if there is no directory yet."""
        selector = self._fs.FileSelector(self._root, allow_not_found=True)
        return sorted(Path(info.path).name for info in self.system.get_file_info(selector) if info.is_file)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.system.open_input_stream(self.path(name)) as stream:
            content: bytes = stream.read()
        return content

    @contextmanager
    def replacing(self, name: str, unfinished: str = ".unfinished") -> Generator[OutputFile]:
        """A file to be written. It gets its name at the end of the block, unless the block raises.

        Until then its name ends in `unfinished`.
        """
        path = self.path(name)
        directory = path.rpartition("/")[0]
        is_local = self.system.type_name == "local"
        if is_local:
            _make_durable_directory(Path(directory))
        else:
            self.system.create_dir(directory, recursive=True)
        with self.system.open_output_stream(path + unfinished) as stream:
            yield stream
        if is_local:
            _sync(path + unfinished)
        self.system.move(path + unfinished, path)
        if is_local:
            _sync_entries(directory)

    def remove(self, name: str) -> None:
        """Removes a file; does nothing if there is none."""
        try:
            self.system.delete_file(self.path(name))
        except FileNotFoundError:
            return


def _make_durable_directory(directory: Path) -> None:
    """Makes a local directory with its parents, each with a durable entry in the one above it."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync_entries(path.parent)


def _sync_entries(directory: str | Path) -> None:
    """Makes the entries of a local directory durable, unless its file system cannot do that, like some that
    are mounted from elsewhere.
    """
    try:
        _sync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _sync(path: str | Path) -> None:
    """Makes the content of a local file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pyarrow_fs() -> Any:
    """PyArrow's module, which has no type information."""
    try:
        return import_module("pyarrow.fs")
    except ImportError as error:
        raise PipelineError(f"PyArrow is not installed: {install_hint('spark')}") from error
