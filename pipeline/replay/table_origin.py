"""A table as the origin of a replay: the data files of the table when the plan is made.

The table's format lists the files, and Spark reads them; Delta Lake and Iceberg need no Spark package for
that. Partition columns are made from the names of the directories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay.plan import Chunk, Piece
from barnabas.pipeline.tables.arrow_types import from_arrow
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.options import TableOptions
from barnabas.pipeline.tables.staging import hive_values

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The locations of a table's files for Spark, and the columns in the names of their directories."""

    files: HadoopFiles
    """Below the table's root."""
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
        """In the order of the files' names, which is the order in which a query wrote its batches."""
        if not self._found.locations:
            return []
        rows = self._read(self._found.locations).groupBy("_metadata.file_path").count().collect()
        return sorted(Piece(str(row[0]), 0, int(row[1])) for row in rows)

    def check(self, pieces: Iterable[Piece]) -> None:
        known = {piece.origin for piece in self.pieces()}
        gone = sorted({piece.origin for piece in pieces} - known)
        if gone:
            raise PipelineError(
                f"{self.name} has changed since the replay began: {gone[0]} is no longer part of it. "
                "Begin another replay of the other records, with another progress directory."
            )

    def read(self, chunk: Chunk) -> DataFrame:
        from pyspark.sql.functions import col

        path, row = col("_metadata.file_path"), col("_metadata.row_index")
        wanted: list[Column] = [
            (path == piece.origin) & (row >= piece.first) & (row < piece.end) for piece in chunk
        ]
        origins = sorted({piece.origin for piece in chunk})
        frame = self._read(map(self._found.files.location_of, origins))
        frame = frame.where(reduce(lambda earlier, condition: earlier | condition, wanted))
        types = {field.name: field.dataType for field in self._found.schema.fields}
        root_uri = self._found.files.root_uri
        for name in self._found.partition_by:
            values = {origin: partition_value(name, origin, root_uri) for origin in origins}
            frame = frame.withColumn(name, _by_file(values).cast(types[name]))
        return frame

    def _read(self, locations: Iterable[str]) -> DataFrame:
        fields = [field for field in self._found.schema.fields if field.name not in self._found.partition_by]
        reader = self._spark.read.schema(type(self._found.schema)(fields))
        return reader.option("recursiveFileLookup", "true").parquet(*locations)


def partition_value(column: str, uri: str, root_uri: str) -> str | None:
    """The value of a column in the directories between a table's root and a file.

    Raises `PipelineError` if they don't have it, or the file is not below the root.
    """
    root, path = (PurePosixPath(unquote(urlsplit(location).path)) for location in (root_uri, uri))
    if root not in path.parents:
        raise PipelineError(f"{uri} is not below {root_uri}: name the table as it was when it was written.")
    found = hive_values(path.relative_to(root).parts[:-1])
    if column not in found:
        raise PipelineError(f"{uri} is in no directory {column}=..., by which the table is partitioned.")
    return found[column]


def _by_file(values: Mapping[str, str | None]) -> Column:
    """A text column with the value of the row's file."""
    from pyspark.sql.functions import coalesce, col, lit, when

    path = col("_metadata.file_path")
    known = [when(path == uri, lit(value)) for uri, value in values.items() if value is not None]
    return coalesce(lit(None).cast("string"), *known)


def _parquet_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from pyspark.sql.types import StructType

    from barnabas.pipeline.tables.parquet.log_files import LogFiles

    files = HadoopFiles(spark, options.location)
    snapshot = LogFiles(files).latest()
    if snapshot.schema is None:
        raise PipelineError(f"{options.location}: there is no table that ingest has written.")
    return TableFiles(
        files,
        tuple(files.location_of(file.uri) for file in snapshot.files),
        StructType.fromJson(json.loads(snapshot.schema)),
        snapshot.partition_by,
    )


def _delta_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from barnabas.pipeline.tables.delta import DeltaLakeTable, arrow_schema

    table = DeltaLakeTable(spark, options).open()
    if table is None:
        raise PipelineError(f"{options.location}: there is no Delta Lake table.")
    features = set(table.protocol().reader_features or ()) - {"timestampNtz"}
    if features or table.protocol().min_reader_version == 2:
        raise PipelineError(
            f"{options.location} needs readers with {', '.join(sorted(features)) or 'column mapping'}, "
            "which a replay doesn't have: copy the records into a table without them."
        )
    files = HadoopFiles(spark, options.location)
    actions: Any = table.get_add_actions(flatten=True)
    paths = actions.column("path").to_pylist()
    columns = tuple(table.metadata().partition_columns)
    # Delta Lake's log has them percent-encoded, by its protocol.
    locations = tuple(files.location(unquote(path)) for path in paths)
    return TableFiles(files, locations, from_arrow(arrow_schema(table)), columns)


def _iceberg_files(spark: SparkSession, options: TableOptions) -> TableFiles:
    from pyiceberg.exceptions import NoSuchTableError

    from barnabas.pipeline.tables.iceberg import IcebergTable, hadoop_files_of, plain_schema

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
        files,
        tuple(files.location(task.file.file_path.removeprefix(begin)) for task in tasks),
        from_arrow(plain_schema(table)),
        (),
    )


_LISTERS: Final = {"parquet": _parquet_files, "delta": _delta_files, "iceberg": _iceberg_files}
