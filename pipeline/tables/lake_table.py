"""The interface of a table of any format: it takes a batch once, in two steps.

`stage` writes the rows where no reader sees them. `commit` makes them part of the table in one step, together
with a note that the table has this batch of this query. A batch that the table has is not staged again.

Between the two steps, ingest writes the records that don't fit the schema to the side table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.batches import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMIT_TRIES_MAX: Final = 100
"""Tries of one commit while other writers are faster."""


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The files that a batch has added."""

    file_count: int
    size_bytes: int


class StagedBatch(Protocol):
    """Rows that are written and not yet part of the table."""

    @property
    def is_adopted(self) -> bool:
        """Whether an earlier try has written the rows, so that only the commit is missing."""
        ...

    def commit(self) -> AddedFiles:
        """Makes them part of the table. Does nothing if another try of the same batch was faster."""
        ...

    def discard(self) -> None:
        """Removes the written files, which hold no rows."""
        ...


class LakeTable(Protocol):
    """A table to which batches are added, each once."""

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch | None:
        """Writes a batch's rows; None if the batch is in the table already. Raises as `has_batch` does."""
        ...


@dataclass(frozen=True, slots=True)
class Compacted:
    """The files that a compaction replaced, or with `dry_run` would replace."""

    removed_count: int = 0
    added_count: int = 0
    """0 for a `dry_run` on Delta Lake, which doesn't report it."""
    size_bytes: int = 0
    """Of the replaced files."""


def no_table(location: str) -> PipelineError:
    """The error for a location without a table."""
    return PipelineError(f"{location}: there is no table here that could be compacted.")
