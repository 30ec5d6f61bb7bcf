"""Opens the table that options name, in its format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.tables.lake_table import LakeTable
from barnabas.pipeline.tables.options import TableOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_table(spark: SparkSession, options: TableOptions) -> LakeTable:
    """The table that the options name, which the first batch makes if there is none.

    Raises `OptionError` for options that don't fit the format or the table, `PipelineError` where the
    format's own package is missing.
    """
    if options.format == "delta":
        from barnabas.pipeline.tables.delta import DeltaLakeTable

        return DeltaLakeTable(spark, options)
    if options.format == "iceberg":
        from barnabas.pipeline.tables.iceberg import IcebergTable

        return IcebergTable(spark, options)
    from barnabas.pipeline.tables.parquet.table import ParquetTable

    return ParquetTable(spark, options)
