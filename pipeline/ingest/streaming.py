"""Starts the stream of an ingest: source, decoding, table, and the handling of records that don't fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.ingest.batch_writer import BatchWriter, WrittenBatch
from barnabas.pipeline.ingest.fingerprints import CheckpointFingerprints
from barnabas.pipeline.ingest.invalid_records import taking_invalid
from barnabas.pipeline.ingest.options import IngestOptions
from barnabas.pipeline.ingest.values.decoding import ValueDecoding
from barnabas.pipeline.tables.hadoop_files import HadoopFiles
from barnabas.pipeline.tables.opening import open_table
from barnabas.pipeline.tables.partitioning import with_partition_columns

STATE_DIRECTORY: Final = "kafka-share"
"""Where in a checkpoint a share group's query keeps its notes."""

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


def ingest(
    spark: SparkSession,
    options: IngestOptions,
    *,
    at_batch: Callable[[WrittenBatch], None] = lambda _written: None,
) -> StreamingQuery:
    """Starts to bring a share group's or a topic's records into a table, each exactly once.

    Returns the running query; `awaitTermination` waits for its end. Without `interval_ms` it ends when the
    table has all records that were there at the start. `at_batch` is called after each batch. Started again
    with the same checkpoint and table, the query goes on where it stopped.

    Raises `OptionError` and `PipelineError` before anything runs; a later error ends the query.
    """
    source = read_source(spark, options)
    writer = batch_writer(spark, options, at_batch)
    stream = source.writeStream.foreachBatch(writer).option("checkpointLocation", options.checkpoint)
    if options.name is not None:
        stream = stream.queryName(options.name)
    if options.interval_ms is None:
        return stream.trigger(availableNow=True).start()
    return stream.trigger(processingTime=f"{options.interval_ms} milliseconds").start()


def read_source(spark: SparkSession, options: IngestOptions) -> DataFrame:
    """The stream of records."""
    reader = spark.readStream.format(options.source)
    for name, value in options.source_options.items():
        reader = reader.option(name, value)
    if options.source == "kafka-share":
        for name, value in _share_options(spark, options).items():
            reader = reader.option(name, value)
    return reader.load()


def _share_options(spark: SparkSession, options: IngestOptions) -> dict[str, str]:
    """The options with defaults for a share group's query."""
    given = {name.casefold() for name in options.source_options}
    state_dir = state_directory(spark, options)
    defaults = {"cores": str(spark.sparkContext.defaultParallelism)}
    if state_dir is not None:
        defaults["stateDir"] = state_dir
    return {name: value for name, value in defaults.items() if name.casefold() not in given}


def state_directory(spark: SparkSession, options: IngestOptions) -> str | None:
    """The option `stateDir` of a share group's query; by default a directory in a local checkpoint.

    Raises `PipelineError` if Hadoop knows no filesystem of the checkpoint.
    """
    if options.source != "kafka-share":
        return None
    given = {name.casefold(): value for name, value in options.source_options.items()}
    if "statedir" in given:
        return given["statedir"]
    checkpoint = HadoopFiles(spark, options.checkpoint)
    return str(checkpoint.local(STATE_DIRECTORY)) if checkpoint.scheme == "file" else None


def batch_writer(
    spark: SparkSession,
    options: IngestOptions,
    at_batch: Callable[[WrittenBatch], None] = lambda _written: None,
) -> BatchWriter:
    """The writer of batches, for a stream that the caller has made: `foreachBatch(batch_writer(...))`.

    The options' checkpoint has to be the stream's.
    """
    decoding = None if options.values is None else ValueDecoding(options.values)
    return BatchWriter(
        open_table(spark, options.table),
        decoding,
        taking_invalid(spark, options),
        fingerprint=CheckpointFingerprints(spark, options.checkpoint),
        at_batch=at_batch,
    )


def table_schema(spark: SparkSession, options: IngestOptions) -> StructType:
    """The columns that the table would get. Reads no records. Raises the errors of `ingest`."""
    rows = read_source(spark, options)
    if options.values is not None:
        decoding = ValueDecoding(options.values)
        rows = decoding.fitting(decoding.decoded(rows))
    return with_partition_columns(rows, options.table.partition_columns).schema
