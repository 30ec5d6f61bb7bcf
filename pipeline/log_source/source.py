"""`format("kafka-log")`: the data source for Spark, around `planning` on the driver, `slice_reader` in tasks.

A query's filters narrow the plan if `spark.sql.python.filterPushdown.enabled` is on; `register` turns it on.
If it is off, Spark refuses a source that takes filters: use the option `pushdown=false` then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.filters import Kept, take_filters
from barnabas.pipeline.log_source.log_options import LOG_COLUMNS, LogOptions, parse_log_options
from barnabas.pipeline.log_source.planning import plan
from barnabas.pipeline.log_source.slice_reader import LogTask, read_log_slice
from barnabas.pipeline.schema import spark_schema


class LogSource(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> StructType:
        return spark_schema(LOG_COLUMNS, parse_log_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_log_options(self.options)
        if schema != spark_schema(LOG_COLUMNS, options.columns):
            raise PipelineError("kafka-log has its own schema; the option columns selects from it.")
        return FilteringLogReader(options) if options.has_pushdown else LogReader(options)


class LogPartition(InputPartition):
    """A task's slice."""

    def __init__(self, task: LogTask) -> None:
        super().__init__(task)
        self.task = task


class LogReader(DataSourceReader):
    """Reads all records that the options name."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._kept = Kept()

    def partitions(self) -> list[InputPartition]:
        return [LogPartition(task) for task in plan(self._options, self._kept)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The task's rows as Arrow batches. With nothing to read, Spark calls it once without a slice."""
        return read_log_slice(partition.task) if isinstance(partition, LogPartition) else iter(())


class FilteringLogReader(LogReader):
    """Reads the records that a query's filters select."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        self._kept, left = take_filters(self._kept, filters)
        return left
