"""Merges the small files of an Iceberg table: Spark rewrites them, and one commit of PyIceberg swaps them.

Files with row-level deletes are left out; engines that write such deletes can merge them. Replaced files stay
until the table's snapshots expire.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.iceberg import IcebergTable, hadoop_files_of
from barnabas.pipeline.tables.lake_table import COMMIT_TRIES_MAX, Compacted, no_table
from barnabas.pipeline.tables.merging import Merge, plan_merges
from barnabas.pipeline.tables.staging import staged_files, use_plain_timestamps

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from barnabas.pipeline.tables.options import CompactOptions


def compact_iceberg(spark: SparkSession, options: CompactOptions) -> Compacted:
    """Merges small files. Raises `PipelineError`."""
    from pyiceberg.exceptions import NoSuchTableError

    opened = IcebergTable(spark, options.table)
    try:
        table = opened.open()
    except NoSuchTableError as error:
        raise no_table(options.table.location) from error
    found = live_files(table)
    merges = plan_merges(
        ((tuple(file.partition), file.file_size_in_bytes, file) for file in found.values()),
        options.target_bytes,
    )
    replaced = [file for merge in merges for file in merge.files]
    size_bytes = sum(file.file_size_in_bytes for file in replaced)
    added_count = sum(merge.output_count for merge in merges)
    if merges and not options.dry_run:
        files = hadoop_files_of(spark, table)
        paths = _rewrite(spark, files, table, merges)
        _commit(opened, [file.file_path for file in replaced], paths)
        added_count = len(paths)
    return Compacted(len(replaced), added_count, size_bytes)


def live_files(table: Table) -> dict[str, Any]:
    """By path, the data files of the newest snapshot without row-level deletes."""
    return {task.file.file_path: task.file for task in table.scan().plan_files() if not task.delete_files}


def _rewrite(spark: SparkSession, files: HadoopFiles, table: Table, merges: list[Merge[Any]]) -> list[str]:
    """Writes the merged files; returns their paths in Iceberg's form."""
    use_plain_timestamps(spark)
    begin = table.location()
    directory = f"data/compacted-{uuid.uuid4().hex}"
    for merge in merges:
        paths = [files.location(file.file_path.removeprefix(f"{begin}/")) for file in merge.files]
        reader = spark.read.option("recursiveFileLookup", "true").option("mergeSchema", "true")
        merged = reader.parquet(*paths).coalesce(merge.output_count)
        merged.write.mode("append").parquet(files.location(directory))
    return [f"{begin}/{directory}/{file.path}" for file in staged_files(files, directory)]


def _commit(opened: IcebergTable, replaced: list[str], added: list[str]) -> None:
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.io.pyarrow import parquet_files_to_data_files

    for _ in range(COMMIT_TRIES_MAX):
        table = opened.open()
        found = live_files(table)
        if any(path not in found for path in replaced):
            raise PipelineError(f"{table.location()}: files to be merged are gone from the table.")
        try:
            with table.transaction() as transaction, transaction.update_snapshot().overwrite() as update:
                for path in replaced:
                    update.delete_data_file(found[path])
                for file in parquet_files_to_data_files(table.io, table.metadata, iter(added)):
                    update.append_data_file(file)
        except CommitFailedException:
            continue
        except ValueError as error:  # such as a column that must not be null
            reason = str(error).split("\n", 1)[0]
            raise PipelineError(f"{table.location()} cannot be compacted here: {reason}") from error
        return
    raise PipelineError(f"{opened.open().location()}: others commit faster than this compaction.")
