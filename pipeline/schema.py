"""The columns of a record, under the names that Spark's own Kafka connector gives them.

So a query for that connector works unchanged. A source offers `RECORD_COLUMNS` or `SHARE_COLUMNS`; the option
`columns` picks some of them. The types are Spark's; `decoding` builds them as Arrow arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

RECORD_COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Spark's type by the column's name. `timestampType` is 0 for the producer's time, 1 for the broker's."""

SHARE_COLUMNS: Final = {**RECORD_COLUMNS, "deliveryCount": "int"}
"""The columns of a share group's records; `deliveryCount` is 1 for the first delivery."""


def pick_columns(offered: dict[str, str], names: Sequence[str] | None) -> list[str]:
    """The columns that the option `columns` names, in its order, case ignored; all of them if it is None."""
    if names is None:
        return list(offered)
    by_folded_name = {name.casefold(): name for name in offered}
    picked: list[str] = []
    for name in names:
        column = by_folded_name.get(name.casefold())
        if column is None:
            raise OptionError("columns", f"there is no column {name!r}; there are {', '.join(offered)}")
        if column in picked:
            raise OptionError("columns", f"{column} is named twice")
        picked.append(column)
    return picked


def spark_schema(offered: dict[str, str], columns: Sequence[str]) -> StructType:
    """The schema of rows with these columns.

    The types are built here by name: Spark's parser of types lives in its JVM, which Python workers lack.
    """
    from pyspark.sql.types import StructType

    by_name = _spark_types()
    schema = StructType()
    for column in columns:
        schema = schema.add(column, by_name[offered[column]])
    return schema


def _spark_types() -> dict[str, DataType]:
    from pyspark.sql import types

    header = types.StructType().add("key", types.StringType()).add("value", types.BinaryType())
    return {
        "binary": types.BinaryType(),
        "string": types.StringType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "timestamp": types.TimestampType(),
        RECORD_COLUMNS["headers"]: types.ArrayType(header),
    }
