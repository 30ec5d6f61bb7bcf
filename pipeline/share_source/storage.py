"""Small files in a directory that PyArrow can reach: local, or a URI such as `s3://` or `hdfs://`.

The one place of this source that touches PyArrow's file systems, which have no types of their own: behind it
stands `Any`. A file is whole or not there: it is written beside and then moved.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from barnabas.pipeline.errors import PipelineError, install_hint

_UNFINISHED: Final = ".unfinished"
_USER: Final = re.compile(r"//[^/\s]*@")
"""The part of a URI that may hold keys, as in `s3://key:secret@bucket`: not to be shown."""


class Directory:
    """A directory, made at its first use. What fails raises `PipelineError`, which begins with the option."""

    def __init__(self, option: str, uri: str) -> None:
        """`option` is what named the directory. Raises `PipelineError` if that cannot be one."""
        self._option = option
        self._uri = uri
        self._files, self._root = self._open()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it."""
        path = self.path_of(name)
        unfinished = f"{path}.{os.getpid()}{_UNFINISHED}"
        try:
            self._files.create_dir(self._root, recursive=True)
            with self._files.open_output_stream(unfinished) as stream:
                stream.write(content)
            self._files.move(unfinished, path)
        except OSError as error:
            raise self._failure(f"{path} cannot be written: {error}") from error

    def read(self, name: str) -> bytes:
        """What is in a file."""
        try:
            with self._files.open_input_stream(self.path_of(name)) as stream:
                return cast("bytes", stream.read())
        except OSError as error:
            raise self._failure(f"{self.path_of(name)} cannot be read: {error}") from error

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        path = self.path_of(name)
        try:
            (info,) = self._files.get_file_info([path])
        except OSError as error:
            raise self._failure(f"{path} cannot be looked up: {error}") from error
        return bool(info.is_file)

    def names(self, suffix: str) -> list[str]:
        """The files whose names end so, in order; none if there is no directory yet."""
        selector = _fs().FileSelector(self._root, allow_not_found=True)
        try:
            found = [Path(info.path).name for info in self._files.get_file_info(selector) if info.is_file]
        except OSError as error:
            raise self._failure(f"{self._uri} cannot be listed: {error}") from error
        return sorted(name for name in found if name.endswith(suffix))

    def remove(self, name: str) -> None:
        """Remove a file."""
        try:
            self._files.delete_file(self.path_of(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failure(f"{self.path_of(name)} cannot be removed: {error}") from error

    def path_of(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _open(self) -> tuple[Any, str]:
        fs = _fs()
        try:
            if "://" in self._uri or self._uri.startswith("file:"):
                files, root = fs.FileSystem.from_uri(self._uri)
            else:
                files, root = fs.LocalFileSystem(), str(Path(self._uri).absolute())
        except (OSError, ValueError) as error:
            raise self._failure(f"{self._uri} is no directory that can be used: {error}") from error
        return files, root.rstrip("/")

    def _failure(self, reason: str) -> PipelineError:
        return PipelineError(f"{self._option}: {_USER.sub('//***@', reason)}")


def _fs() -> Any:
    try:
        return import_module("pyarrow.fs")
    except ImportError as error:
        raise PipelineError(f"PyArrow is not installed: {install_hint('spark')}") from error
