"""Converts column types between Spark and Arrow, with PySpark's internal functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from barnabas.pipeline.columnar import ArrowSchema, ArrowType, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


def to_arrow(schema: StructType) -> ArrowSchema:
    """Spark's columns as Arrow's; timestamps are in UTC."""
    from pyspark.sql.pandas import types

    return cast("ArrowSchema", cast("Any", types).to_arrow_schema(schema, timezone="UTC"))


def from_arrow(schema: ArrowSchema) -> StructType:
    """Arrow's columns as Spark's."""
    from pyspark.sql.pandas import types

    return cast("StructType", cast("Any", types).from_arrow_schema(schema))


def type_from_arrow(kind: ArrowType) -> DataType:
    """One of Arrow's types as Spark's."""
    from pyspark.sql.pandas import types

    return cast("DataType", cast("Any", types).from_arrow_type(kind))


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]], schema: StructType
) -> DataFrame:
    """PySpark's `mapInArrow` without its check that pandas is installed, which it does not use here."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    make: Any = UserDefinedFunction
    udf = make(function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = udf(*(frame[name] for name in frame.columns))
    rows: Any = frame
    mapped = rows._jdf.mapInArrow(column._jc, False, None)
    return cast("DataFrame", ClassicDataFrame(mapped, frame.sparkSession))
