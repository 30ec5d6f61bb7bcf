"""What a table of any format does for ingest: takes a batch once, in two steps.

`stage` writes the rows where no reader sees them; `commit` makes them part of the table, in one step,
together with the note that this batch of this query is in. A batch that is in already is not staged again.

The two are apart so that records which could not be read are safe in the side table before the rest is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.batches import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMIT_TRIES_MAX: Final = 100
"""So often a commit is tried while other writers are faster."""


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """What a batch came to."""

    file_count: int
    size_bytes: int


class StagedBatch(Protocol):
    """Rows that are written and not yet part of the table."""

    @property
    def is_adopted(self) -> bool:
        """Whether an earlier try had come so far that only the commit was missing."""
        ...

    def commit(self) -> AddedFiles:
        """Makes them part of the table. If another try of the same batch was faster, that one counts."""
        ...

    def discard(self) -> None:
        """Takes back what was written, which holds no rows."""
        ...


class LakeTable(Protocol):
    """A table that batches are added to, each once."""

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch | None:
        """Writes a batch's rows; None if the batch is in the table already. Raises as `has_batch` does."""
        ...


@dataclass(frozen=True, slots=True)
class Compacted:
    """The files that a compaction replaced, or with `dry_run` would replace."""

    removed_count: int = 0
    added_count: int = 0
    """0 for a `dry_run` on Delta Lake, which doesn't tell it."""
    size_bytes: int = 0
    """Of the replaced files."""


def no_table(location: str) -> PipelineError:
    """The error for a location without a table."""
    return PipelineError(f"{location}: there is no table here that could be compacted.")
