"""What a table of any format does for ingest: takes a batch once, in two steps.

`stage` writes the rows where no reader sees them; `commit` makes them part of the table, in one step,
together with the note that this batch of this query is in. A batch that is in already is not staged again.

The two are apart so that records which could not be read are safe in the side table before the rest is shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.ingest.batches import Batch
from barnabas.pipeline.ingest.partitioning import PartitionColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from barnabas.pipeline.ingest.options import TableOptions

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


def open_table(spark: SparkSession, options: TableOptions) -> LakeTable:
    """The table that the options name, which the first batch makes if there is none.

    Raises `OptionError` for options that don't fit the format or the table, `PipelineError` where the
    format's own package is missing.
    """
    if options.format == "delta":
        from barnabas.pipeline.ingest.delta import DeltaLakeTable

        return DeltaLakeTable(spark, options)
    if options.format == "iceberg":
        from barnabas.pipeline.ingest.iceberg import IcebergTable

        return IcebergTable(spark, options)
    from barnabas.pipeline.ingest.parquet.table import ParquetTable

    return ParquetTable(spark, options)


def all_nullable(schema: StructType) -> StructType:
    """The same columns, of which each, and each part of one, may be null."""
    from pyspark.sql.types import StructType

    text = schema.json()
    for name in ("nullable", "containsNull", "valueContainsNull"):
        text = text.replace(f'"{name}":false', f'"{name}":true')
    return StructType.fromJson(json.loads(text))


def with_nullable_columns(frame: DataFrame) -> DataFrame:
    """The same rows, in columns that may be null: that one never is is no promise of a stream's.

    Files with a column that says it is always there can't be read together with files from before it was
    added.
    """
    from pyspark.sql.functions import col, spark_partition_id, when

    always = spark_partition_id() >= 0  # not a constant, which Spark would see through
    never_null = [field.name for field in frame.schema.fields if not field.nullable]
    return (
        frame.withColumns({name: when(always, col(f"`{name}`")) for name in never_null})
        if never_null
        else frame
    )


def check_same_partitions(location: str, existing: Sequence[str], wanted: Sequence[PartitionColumn]) -> None:
    """Raises `OptionError` if a table is partitioned by other columns than were asked for."""
    names = [column.name for column in wanted]
    if list(existing) != names:
        before, now = (", ".join(columns) or "nothing" for columns in (existing, names))
        raise OptionError("partition_by", f"{location} is partitioned by {before}, not by {now}")


def check_same_columns(location: str, existing: StructType, given: StructType) -> bool:
    """Whether there are new columns. Raises `PipelineError` if a column is gone or has another type."""
    types = {field.name: field.dataType.simpleString() for field in given.fields}
    for field in existing.fields:
        before, now = field.dataType.simpleString(), types.get(field.name, "nothing")
        if before != now:
            raise PipelineError(
                f"{location}: column {field.name} is {before} in the table and {now} in what is written "
                "to it. Columns may be added, and neither change nor go: write to another table."
            )
    return len(given.fields) > len(existing.fields)
