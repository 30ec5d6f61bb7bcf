"""The directories that options of this source name: small files, at a path or a URI (`s3://`, `hdfs://`).

Errors name the option, and hide credentials in a URI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from barnabas.pipeline.arrow_files import ArrowFiles
from barnabas.pipeline.errors import PipelineError

_USER: Final = re.compile(r"//[^/\s]*@")
"""The part of a URI that may hold keys, as in `s3://key:secret@bucket`; errors hide it."""


class Directory:
    """A directory, made at its first use. Failures raise `PipelineError`, which begins with the option."""

    def __init__(self, option: str, uri: str) -> None:
        """`option` named the directory. Raises `PipelineError` if it cannot be one."""
        self._option = option
        self._uri = uri
        with self._failing(f"{uri} is no directory that can be used"):
            self._files = ArrowFiles(uri)

    def write(self, name: str, content: bytes) -> None:
        """Writes or replaces a file as a whole."""
        with (
            self._failing(f"{self.path_of(name)} cannot be written"),
            self._files.replacing(name, f".{os.getpid()}.unfinished") as file,
        ):
            file.write(content)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self._failing(f"{self.path_of(name)} cannot be read"):
            return self._files.read(name)

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        with self._failing(f"{self.path_of(name)} cannot be looked up"):
            return self._files.size_bytes(name) is not None

    def names(self, suffix: str) -> list[str]:
        """The files whose names end in `suffix`, ascending; none if there is no directory yet."""
        with self._failing(f"{self._uri} cannot be listed"):
            return [name for name in self._files.names() if name.endswith(suffix)]

    def remove(self, name: str) -> None:
        """Removes a file; does nothing if there is none."""
        with self._failing(f"{self.path_of(name)} cannot be removed"):
            self._files.remove(name)

    def path_of(self, name: str) -> str:
        return self._files.path(name)

    @contextmanager
    def _failing(self, failure: str) -> Generator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            reason = _USER.sub("//***@", f"{failure}: {error}")
            raise PipelineError(f"{self._option}: {reason}") from error
