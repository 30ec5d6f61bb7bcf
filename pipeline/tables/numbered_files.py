"""Files of one directory that are named by ascending numbers; the one with the highest number counts.

A writer names the number of its file. If that file exists already, another writer was faster: nothing
changes. So two writers never both succeed with the same number.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.pipeline.tables.hadoop_files import HadoopFiles


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

    def read(self, number: int) -> str:
        """The text of a file. Raises FileNotFoundError."""
        return self._files.read_text(self._path(number))

    def uri(self, number: int) -> str:
        """The absolute URI of a file, percent-encoded."""
        return self._files.uri(self._path(number))

    def add(self, number: int, text: str) -> bool:
        """Writes a file in one step and removes old ones; False if there is a file of that number."""
        if not self._files.create_text(self._path(number), text):
            return False
        for old in self.numbers()[: -self._kept_count]:
            self._files.delete(self._path(old))
        return True

    def remove_all(self) -> None:
        """Removes every file."""
        for number in self.numbers():
            self._files.delete(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self._directory}/{number}{self._suffix}"
