"""A batch that is being added to a table with a log: the common part of Delta Lake and Iceberg.

Its files are written; one commit adds them together with the batch's number. A commit that lost against
another writer's is tried again on the new state of the table, unless the table has the batch by now.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.batches import Batch, has_batch
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.lake_table import COMMIT_TRIES_MAX, AddedFiles
from barnabas.pipeline.tables.staging import StagedFile, staged_files, total_bytes

Table = TypeVar("Table")
Addition = TypeVar("Addition")
"""A file in the form that the table's log needs."""


class LoggedBatch(ABC, Generic[Table, Addition]):
    """A batch of one query, whose files are in `directory`, below the table's location."""

    def __init__(self, files: HadoopFiles, directory: str, batch: Batch) -> None:
        self.files = files
        self.directory = directory
        self.batch = batch

    @property
    def is_adopted(self) -> bool:
        """See `StagedBatch`: each try writes files of its own."""
        return False

    def commit(self) -> AddedFiles:
        """Adds the files in one commit, with the batch's number. Raises as `has_batch` does."""
        found = staged_files(self.files, self.directory)
        additions = self.additions(found)
        for _ in range(COMMIT_TRIES_MAX):
            table = self.open_table()
            if has_batch(self.files.root_uri, self.last_batch(table), self.batch):
                self.discard()  # another try of this batch was faster
                return AddedFiles(0, 0)
            if self.try_to_add(table, additions):
                return AddedFiles(len(found), total_bytes(found))
        raise PipelineError(f"{self.files.root_uri}: others commit faster than this batch can be added.")

    def discard(self) -> None:
        """Removes the written files."""
        self.files.delete(self.directory)

    @abstractmethod
    def additions(self, found: list[StagedFile]) -> list[Addition]:
        """The files in the form that `try_to_add` needs."""

    @abstractmethod
    def open_table(self) -> Table:
        """The table as it is now, made if there is none."""

    @abstractmethod
    def last_batch(self, table: Table) -> Batch | None:
        """The last batch of the query in the table."""

    @abstractmethod
    def try_to_add(self, table: Table, additions: list[Addition]) -> bool:
        """One commit; False if another writer's came before it."""
