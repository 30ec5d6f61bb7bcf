"""A table as what is replayed: the data files that it consists of when the plan is made.

Which files those are, the table's format says; Spark reads them, and so it does for Delta Lake and Iceberg
without their packages for Spark. Columns that stand in the directories' names are made of those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.ingest.arrow_types import from_arrow
from barnabas.pipeline.ingest.hadoop_files import HadoopFiles
from barnabas.pipeline.ingest.options import TableOptions
from barnabas.pipeline.replay.plan import Chunk, Piece

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table, as Spark finds them, and the columns that are in their directories' names."""

    locations: tuple[str, ...]
    schema: StructType
    partition_by: tuple[str, ...]


class TableOrigin:
    """One table."""

    def __init__(self, spark: SparkSession, options: TableOptions) -> None:
        """Raises `PipelineError` if there is no such table."""
        self._spark = spark
        self._found = _LISTERS[options.format](spark, options)
        self.name: Final[str] = options.location

    def pieces(self) -> Iterable[Piece]:
        """In the order of the files' names, in which a query's batches stand as they were written."""
        if not self._found.locations:
            return []
        rows = self._read(self._found.locations).groupBy("_metadata.file_path").count().collect()
        return sorted(Piece(str(row[0]), 0, int(row[1])) for row in rows)

    def check(self, pieces: Iterable[Piece]) -> None:
        known = {piece.origin for piece in self.pieces()}
        gone = sorted({piece.origin for piece in pieces} - known)
        if gone:
            raise PipelineError(
                f"{self.name} has changed since the replay began, {gone[0]} is no part of it any more. "
                "Begin another replay of what is left, with another progress directory."
            )

    def read(self, chunk: Chunk) -> DataFrame:
        from pyspark.sql.functions import col

        path, row = col("_metadata.file_path"), col("_metadata.row_index")
        wanted: list[Column] = [
            (path == piece.origin) & (row >= piece.first) & (row < piece.end) for piece in chunk
        ]
        by_path = {_comparable(location): location for location in self._found.locations}
        locations = {by_path[_comparable(piece.origin)] for piece in chunk}
        frame = self._read(sorted(locations)).where(reduce(lambda one, other: one | other, wanted))
        types = {field.name: field.dataType for field in self._found.schema.fields}
        for name in self._found.partition_by:
            frame = frame.withColumn(name, _from_path(name).cast(types[name]))
        return frame

    def _read(self, locations: Iterable[str]) -> DataFrame:
        fields = [one for one in self._found.schema.fields if one.name not in self._found.partition_by]
        reader = self._spark.read.schema(type(self._found.schema)(fields))
        return reader.option("recursiveFileLookup", "true").parquet(*locations)


def _comparable(location: str) -> str:
    """A path, however it is spelt: with or without a scheme, percent-encoded or not."""
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(location).path) if "%" in location else urlsplit(location).path


def _from_path(column: str) -> Column:
    """The value of a column that a file's directory names."""
    from pyspark.sql.functions import col, lit, regexp_extract, replace, url_decode, when

    text = regexp_extract(col("_metadata.file_path"), f"/{column}=([^/]*)/", 1)
    # Once for the URI and once for the name. What decodes here takes a plus for a space, as forms do.
    for _ in range(2):
        text = url_decode(replace(text, lit("+"), lit("%2B")))
    return when(text != _NULL, text)


def _parquet_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from pyspark.sql.types import StructType

    from barnabas.pipeline.ingest.parquet.log_files import LogFiles

    files = HadoopFiles(spark, options.location)
    snapshot = LogFiles(files).latest()
    if snapshot.schema is None:
        raise PipelineError(f"{options.location}: there is no table that ingest has written.")
    return TableFiles(
        tuple(files.location_of(file.uri) for file in snapshot.files),
        StructType.fromJson(json.loads(snapshot.schema)),
        snapshot.partition_by,
    )


def _delta_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from barnabas.pipeline.ingest.delta import DeltaLakeTable, arrow_schema

    table = DeltaLakeTable(spark, options).open()
    if table is None:
        raise PipelineError(f"{options.location}: there is no Delta Lake table.")
    features = set(table.protocol().reader_features or ()) - {"timestampNtz"}
    if features or table.protocol().min_reader_version == 2:
        raise PipelineError(
            f"{options.location} needs readers with {', '.join(sorted(features)) or 'column mapping'}, "
            "which a replay is not: copy what is to be replayed into a table without."
        )
    files = HadoopFiles(spark, options.location)
    actions: Any = table.get_add_actions(flatten=True)
    paths = actions.column("path").to_pylist()
    columns = tuple(table.metadata().partition_columns)
    return TableFiles(tuple(files.location(path) for path in paths), from_arrow(arrow_schema(table)), columns)


def _iceberg_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from pyiceberg.exceptions import NoSuchTableError

    from barnabas.pipeline.ingest.iceberg import IcebergTable, hadoop_files_of, plain_schema

    try:
        table = IcebergTable(spark, options).open()
    except NoSuchTableError as error:
        raise PipelineError(f"{options.location}: there is no such Iceberg table.") from error
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise PipelineError(f"{options.location} has deleted rows in its files: compact it first.")
    files = hadoop_files_of(spark, table)
    begin = f"{table.location()}/"
    return TableFiles(
        tuple(files.location(task.file.file_path.removeprefix(begin)) for task in tasks),
        from_arrow(plain_schema(table)),
        (),
    )


_LISTERS: Final = {"parquet": _parquet_files, "delta": _delta_files, "iceberg": _iceberg_files}
