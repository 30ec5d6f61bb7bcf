"""Files of one directory that are named by ascending numbers; the one with the highest number counts.

A writer names the number of its file. If that number was used before, another writer was faster: nothing
changes. So two writers never both succeed with the same number, even if the first one's file is removed by
now. For this a file is removed only after `kept_count` newer ones were added.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles

READ_TRIES_MAX: Final = 5
"""Tries to read the newest file: writers may have added many and removed it meanwhile."""


class NumberedFiles:
    """The files `directory/NUMBER`, followed by `suffix`; the newest `kept_count` are kept."""

    def __init__(self, files: HadoopFiles, directory: str, *, suffix: str = "", kept_count: int = 1) -> None:
        self._files = files
        self._directory = directory
        self._suffix = suffix
        self._kept_count = kept_count

    def names(self) -> list[str]:
        """The names of all files in the directory, numbers or not."""
        return [entry.name for entry in self._files.entries(self._directory)]

    def numbers(self, names: Iterable[str] | None = None) -> list[int]:
        """The numbers in these names, ascending; by default in those of the directory."""
        every = self.names() if names is None else names
        found = (name.removesuffix(self._suffix) for name in every if name.endswith(self._suffix))
        return sorted(int(number) for number in found if number.isdecimal())

    def newest(self) -> tuple[int, str] | None:
        """The highest number and the text of its file; None if there is no file.

        Raises `PipelineError` if others add files faster than one can be read.
        """
        for _ in range(READ_TRIES_MAX):
            numbers = self.numbers()
            if not numbers:
                return None
            try:
                return numbers[-1], self._files.read_text(self._path(numbers[-1]))
            except FileNotFoundError:
                continue
        raise PipelineError(f"{self._files.uri(self._directory)} changes faster than it can be read.")

    def uri(self, number: int) -> str:
        """The absolute URI of a file, percent-encoded."""
        return self._files.uri(self._path(number))

    def add(self, number: int, text: str) -> bool:
        """Writes a file in one step and removes old ones; False if that number was used before.

        It also returns False, to be safe, if others have added `kept_count` newer files since the file was
        written: that looks the same as a number whose file was removed.
        """
        if not self._files.create_text(self._path(number), text):
            return False
        numbers = self.numbers()
        for old in numbers[: -self._kept_count]:
            self._files.delete(self._path(old))
        return numbers[-1] < number + self._kept_count

    def _path(self, number: int) -> str:
        return f"{self._directory}/{number}{self._suffix}"
