"""The records that are written for rows: which rows, and their key, value, headers, partition and origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.replay.options import ReplayOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORIGIN_HEADER: Final = "barnabas.replayed.from"
"""A JSON object: `from`, the table or topics; `topic`, `partition` and `offset` if the row has them."""

_COORDINATES: Final = ("topic", "partition", "offset")
_HEADERS: Final = "array<struct<key:string,value:binary>>"


def select_rows(frame: DataFrame, options: ReplayOptions) -> DataFrame:
    """The rows that the options select. Raises `OptionError` for a condition that doesn't fit the columns."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col, lit, timestamp_millis

    for name, bound in (("from_ms", options.from_ms), ("to_ms", options.to_ms)):
        if bound is not None:
            _require(frame, "timestamp", name)
            moment = timestamp_millis(lit(bound))
            time = col("timestamp")
            frame = frame.where(time >= moment if name == "from_ms" else time < moment)
    if options.partitions is not None:
        _require(frame, "partition", "partitions")
        frame = frame.where(col("partition").isin([*options.partitions]))
    if options.where is None:
        return frame
    try:
        return frame.where(options.where)
    except AnalysisException as error:
        raise OptionError("where", _first_line(error)) from error


def select_sink_columns(frame: DataFrame, options: ReplayOptions, origin: str) -> DataFrame:
    """The columns for the sink. Raises `OptionError` or `PipelineError` for an unusable key or value."""
    columns = [
        _computed(frame, "key", options.key),
        _computed(frame, "value", options.value),
        _headers(frame, origin).alias("headers"),
    ]
    for name, is_kept in (("timestamp", options.keep_timestamps), ("partition", options.keep_partitions)):
        if is_kept:
            _require(frame, name, f"keep_{name}s")
            columns.append(frame[name])
    if "topic" in frame.columns and "topic" not in {name.casefold() for name in options.sink_options}:
        columns.append(frame["topic"])
    return frame.select(*columns)


def _computed(frame: DataFrame, name: str, expression: str) -> Column:
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import expr, lit

    if expression == name == "key" and "key" not in frame.columns:
        return lit(None).cast("binary").alias(name)
    column = expr(expression)
    try:
        kind = frame.select(column).schema.fields[0].dataType.simpleString()
    except AnalysisException as error:
        raise OptionError(name, _first_line(error)) from error
    if kind not in ("binary", "string"):
        raise PipelineError(
            f"{name}: {expression} is {kind}, but a {name} has to be binary or string, such as "
            f"to_json({expression})."
        )
    return column.cast("binary").alias(name)


def _headers(frame: DataFrame, origin: str) -> Column:
    """The record's own headers, and its origin."""
    from pyspark.sql.functions import array, coalesce, col, concat, lit, struct, to_json

    known = [lit(origin).alias("from"), *(col(name) for name in _COORDINATES if name in frame.columns)]
    came_from = struct(lit(ORIGIN_HEADER).alias("key"), to_json(struct(*known)).cast("binary").alias("value"))
    if "headers" not in frame.columns:
        return array(came_from).cast(_HEADERS)
    before = coalesce(col("headers"), array()).cast(_HEADERS)
    return concat(before, array(came_from).cast(_HEADERS))


def _require(frame: DataFrame, column: str, option: str) -> None:
    if column not in frame.columns:
        raise OptionError(option, f"needs a column {column}, which the replayed rows don't have")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
