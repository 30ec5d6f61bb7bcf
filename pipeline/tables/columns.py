"""The columns of a table beside those of the rows that are added to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.tables.partitioning import PartitionColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


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
