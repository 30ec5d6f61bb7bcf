"""The log of a Parquet table on its filesystem: reads the newest version, and adds one in one step.

Two writers never both add the same version (`numbered_files`): the slower one reads the log again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.lake_table import COMMIT_TRIES_MAX
from barnabas.pipeline.tables.numbered_files import NumberedFiles
from barnabas.pipeline.tables.parquet.log import DIRECTORY, SUFFIX, Snapshot, decode, encode

VERSIONS_KEPT: Final = 10
"""For readers that have listed the log and not read it yet, and for people who inspect it."""


class LogFiles:
    """Reads and writes the log of one table."""

    def __init__(self, files: HadoopFiles) -> None:
        self._files = files
        self._numbered = NumberedFiles(files, DIRECTORY, suffix=SUFFIX, kept_count=VERSIONS_KEPT)

    def latest(self) -> Snapshot:
        """The newest version. Raises `PipelineError` if ingest has not written this log."""
        foreign = [name for name in self._numbered.names() if name.isdecimal()]
        if foreign:
            where = self._files.uri(f"{DIRECTORY}/{foreign[0]}")
            raise PipelineError(f"{where} is no log of a table that ingest has written.")
        newest = self._numbered.newest()
        return Snapshot() if newest is None else decode(*newest, self._numbered.uri(newest[0]))

    def add(self, snapshot: Snapshot) -> bool:
        """Adds a version; False if another writer has added one of that number."""
        return self._numbered.add(snapshot.version, encode(snapshot, self._files.root_uri))

    def change(self, changed: Callable[[Snapshot], Snapshot | None], action: str) -> None:
        """Adds the version that `changed` makes from the newest one; repeats that while others are faster.

        Adds nothing if `changed` returns None. Raises `PipelineError` after `COMMIT_TRIES_MAX` tries.
        """
        for _ in range(COMMIT_TRIES_MAX):
            wanted = changed(self.latest())
            if wanted is None or self.add(wanted):
                return
        raise PipelineError(f"{self._files.root_uri}: others commit faster than {action}.")
