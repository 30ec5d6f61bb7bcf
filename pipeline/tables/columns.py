"""Compares the columns of a table with the columns of rows to be added."""

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
    """The same columns; each column, and each part of one, may be null."""
    from pyspark.sql.types import StructType

    text = schema.json()
    for name in ("nullable", "containsNull", "valueContainsNull"):
        text = text.replace(f'"{name}":false', f'"{name}":true')
    return StructType.fromJson(json.loads(text))


def with_nullable_columns(frame: DataFrame) -> DataFrame:
    """The same rows, in columns that may be null.

    A stream does not promise that a column is never null. And files with a column that is declared as never
    null can't be read together with older files without that column.
    """
    from pyspark.sql.functions import col, spark_partition_id, when

    always = spark_partition_id() >= 0  # not a constant, which Spark would optimize away
    never_null = [field.name for field in frame.schema.fields if not field.nullable]
    return (
        frame.withColumns({name: when(always, col(f"`{name}`")) for name in never_null})
        if never_null
        else frame
    )


def check_same_partitions(location: str, existing: Sequence[str], wanted: Sequence[PartitionColumn]) -> None:
    """Raises `OptionError` if the table is partitioned by other columns than the wanted ones."""
    names = [column.name for column in wanted]
    if list(existing) != names:
        before, now = (", ".join(columns) or "nothing" for columns in (existing, names))
        raise OptionError("partition_by", f"{location} is partitioned by {before}, not by {now}")


def check_same_columns(location: str, existing: StructType, given: StructType) -> bool:
    """Whether `given` has new columns. Raises `PipelineError` if a column is gone or has another type."""
    types = {field.name: field.dataType.simpleString() for field in given.fields}
    for field in existing.fields:
        before, now = field.dataType.simpleString(), types.get(field.name, "nothing")
        if before != now:
            raise PipelineError(
                f"{location}: column {field.name} is {before} in the table and {now} in the rows to be "
                "written. Columns can be added, but not changed or removed: write to another table."
            )
    return len(given.fields) > len(existing.fields)
