"""The columns that a table is partitioned by: a column's name, or a name with an expression of Spark SQL.

topic                               a column of the rows
date                                the day of `timestamp`, in UTC in every session
hour=hour(timestamp)                computed
country=value.address.country       from a decoded value
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS_MAX: Final = 8
"""Each multiplies the number of files that a batch is written to."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DAY: Final = "date_from_unix_date(cast(floor(unix_micros(timestamp) / 86400000000) as int))"
_BUILT_IN: Final = {"date": _DAY}


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition column; `expression` is None for a column that the rows have."""

    name: str
    expression: str | None = None


def parse_partitioning(given: Iterable[str]) -> tuple[PartitionColumn, ...]:
    """The columns from texts `NAME` or `NAME=EXPRESSION`. Raises `OptionError`."""
    columns = tuple(_parse_column(text) for text in given)
    if len(columns) > COLUMNS_MAX:
        raise OptionError("partition_by", f"{len(columns)} columns are more than {COLUMNS_MAX}")
    if len({column.name for column in columns}) != len(columns):
        raise OptionError("partition_by", "a column is named twice")
    return columns


def with_partition_columns(frame: DataFrame, columns: Iterable[PartitionColumn]) -> DataFrame:
    """The rows with the computed columns. Raises `PipelineError` for one that can't be computed."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import expr

    for column in columns:
        expression = column.expression
        if expression is None and column.name not in frame.columns:
            expression = _BUILT_IN.get(column.name, column.name)
        if expression is None:
            continue
        try:
            frame = frame.withColumn(column.name, expr(expression))
        except AnalysisException as error:
            reason = str(error).split("\n", 1)[0]
            raise PipelineError(f"partition_by: {column.name} cannot be computed: {reason}") from error
    return frame


def _parse_column(text: str) -> PartitionColumn:
    name, equals, expression = text.partition("=")
    name, expression = name.strip(), expression.strip()
    if not _NAME.fullmatch(name) or (equals and not expression):
        raise OptionError("partition_by", f"{text!r} is not NAME or NAME=EXPRESSION")
    return PartitionColumn(name, expression or None)
