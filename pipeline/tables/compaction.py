"""Merges a table's small files into larger ones; its records stay the same.

`parquet.compaction` merges plain Parquet tables and `iceberg_compaction` Iceberg tables, both with Spark.
Delta Lake's own package merges its files on the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.tables.lake_table import Compacted
from barnabas.pipeline.tables.options import CompactOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compact(spark: SparkSession, options: CompactOptions) -> Compacted:
    """Merges small files to files of about `target_bytes`. Readers see each record once at any time.

    For plain Parquet this holds for readers that use the table's log. Streams may write to the table
    meanwhile; a second compaction takes over from the first. Raises `PipelineError` without such a table.
    """
    if options.table.format == "delta":
        from barnabas.pipeline.tables.delta import compact_delta

        return compact_delta(spark, options)
    if options.table.format == "iceberg":
        from barnabas.pipeline.tables.iceberg_compaction import compact_iceberg

        return compact_iceberg(spark, options)
    from barnabas.pipeline.tables.parquet.compaction import compact_parquet

    return compact_parquet(spark, options)
