"""`format("kafka-topic")`: the data source for Spark, for readers and writers.

A query's filters narrow a batch read if `spark.sql.python.filterPushdown.enabled` is on; `register` turns it
on. If it is off, Spark refuses a source that takes filters: use the option `pushdown=false` then.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.schema import RECORD_COLUMNS, spark_schema
from barnabas.pipeline.topic_sink.columns import check_schema
from barnabas.pipeline.topic_sink.sink_options import SinkOptions, parse_sink_options
from barnabas.pipeline.topic_sink.writers import TopicStreamWriter, TopicWriter
from barnabas.pipeline.topic_source.batch_reader import FilteringTopicBatchReader, TopicBatchReader
from barnabas.pipeline.topic_source.stream_reader import TopicStreamReader
from barnabas.pipeline.topic_source.topic_options import TopicOptions, parse_topic_options


class TopicSource(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        return "kafka-topic"

    def schema(self) -> StructType:
        return spark_schema(RECORD_COLUMNS, parse_topic_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._read_options(schema)
        options.refuse_stream_only()
        return FilteringTopicBatchReader(options) if options.has_pushdown else TopicBatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = self._read_options(schema)
        options.refuse_batch_only()
        return TopicStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return TopicWriter(self._write_options(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return TopicStreamWriter(self._write_options(schema, overwrite))

    def _read_options(self, schema: StructType) -> TopicOptions:
        options = parse_topic_options(self.options)
        if schema != spark_schema(RECORD_COLUMNS, options.columns):
            raise PipelineError("kafka-topic has its own schema; the option columns selects from it.")
        return options

    def _write_options(self, schema: StructType, overwrite: bool) -> SinkOptions:
        options = parse_sink_options(self.options)
        check_schema(schema, options.topic)
        if overwrite:
            raise PipelineError("Records are appended to topics: use the mode append, not overwrite.")
        return options
