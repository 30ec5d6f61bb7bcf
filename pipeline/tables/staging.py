"""Writes a batch's rows as Parquet files into a directory that readers ignore, and lists the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from barnabas.pipeline.tables.hadoop_files import HadoopFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIRECTORY: Final = "_staging"
"""Below a table. Readers of Parquet directories ignore names that begin with an underscore."""

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A data file. `path` is relative to the written directory, not encoded."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def partition_values(self) -> dict[str, str | None]:
        """By column, the values in Hive's names of directories: `date=2026-01-02/`."""
        return hive_values(self.path.split("/")[:-1])


def hive_values(directories: Iterable[str]) -> dict[str, str | None]:
    """By column, the values in the names of Hive's directories; other directories are left out."""
    parts = (directory.partition("=") for directory in directories)
    return {
        unquote(name): None if value == _NULL else unquote(value) for name, equals, value in parts if equals
    }


def write_staged(frame: DataFrame, files: HadoopFiles, path: str, partition_by: Sequence[str]) -> None:
    """Writes the rows. By Spark's commit protocol a task that ran twice counts once."""
    use_plain_timestamps(frame.sparkSession)
    writer = frame.write.mode("error")
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.parquet(files.location(path))


def use_plain_timestamps(spark: SparkSession) -> None:
    """Sets Parquet's own timestamps, which every reader knows; Spark's default is an old format of Hive.

    Spark has this setting only in the session, and a micro-batch has a session of its own.
    """
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def staged_files(files: HadoopFiles, path: str) -> list[StagedFile]:
    """The data files below a directory, in the order of their names."""
    begin = f"{files.uri(path)}/"
    found = (entry for entry in files.files(path) if entry.name.endswith(".parquet"))
    return sorted(
        (
            StagedFile(unquote(entry.uri.removeprefix(begin)), entry.size_bytes, entry.modified_ms)
            for entry in found
        ),
        key=lambda file: file.path,
    )


def total_bytes(found: Iterable[StagedFile]) -> int:
    """The size of several files."""
    return sum(file.size_bytes for file in found)


def record_counts(
    spark: SparkSession, files: HadoopFiles, path: str, found: Sequence[StagedFile]
) -> dict[str, int]:
    """The number of records of each staged file, by path; Spark reads only the footers."""
    if not found:
        return {}
    frame = spark.read.option("recursiveFileLookup", "true").parquet(files.location(path))
    rows = frame.groupBy("_metadata.file_path").count().collect()
    begin = f"/{path}/"
    by_path = {unquote(str(row[0])).rpartition(begin)[2]: int(row[1]) for row in rows}
    return {file.path: by_path.get(file.path, 0) for file in found}
