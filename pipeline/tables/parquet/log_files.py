"""The log of a Parquet table on its filesystem: the newest version, and adding one in one step.

Who adds a version names its number. If somebody else was faster the file is there already, nothing happens,
and the caller looks again: two writers never both succeed with the same number.
"""

from __future__ import annotations

from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.parquet.log import DIRECTORY, SUFFIX, Snapshot, decode, encode, version_of

VERSIONS_KEPT: Final = 10
"""For readers that have listed the log and not read it yet, and for people who look into it."""

READ_TRIES_MAX: Final = 5
"""Each time the newest version was removed while it was looked for, by writers who added many."""


class LogFiles:
    """Reads and writes the log of one table."""

    def __init__(self, files: HadoopFiles) -> None:
        self._files = files

    def latest(self) -> Snapshot:
        """The newest version. Raises `PipelineError` if what lies there is no log of ours."""
        for _ in range(READ_TRIES_MAX):
            versions = self._versions()
            if not versions:
                return Snapshot()
            path = _path(versions[-1])
            try:
                text = self._files.read_text(path)
            except FileNotFoundError:
                continue
            return decode(versions[-1], text, self._files.uri(path))
        raise PipelineError(f"{self._files.uri(DIRECTORY)} changes faster than it can be read.")

    def add(self, snapshot: Snapshot) -> bool:
        """Adds a version, unless there is one of that number: then False."""
        if not self._files.create_text(_path(snapshot.version), encode(snapshot, self._files.root_uri)):
            return False
        for version in self._versions()[:-VERSIONS_KEPT]:
            self._files.delete(_path(version))
        return True

    def _versions(self) -> list[int]:
        names = [entry.name for entry in self._files.entries(DIRECTORY)]
        foreign = [name for name in names if name.isdecimal()]
        if foreign:
            where = self._files.uri(f"{DIRECTORY}/{foreign[0]}")
            raise PipelineError(f"{where} is no log of a table that ingest has written.")
        return sorted(version for name in names if (version := version_of(name)) is not None)


def _path(version: int) -> str:
    return f"{DIRECTORY}/{version}{SUFFIX}"
