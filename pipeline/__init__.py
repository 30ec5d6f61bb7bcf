"""The data pipeline on Spark: sources, a sink, and the commands that use them (extra `[spark]`).

    from barnabas.pipeline import register
    register(spark)
    spark.readStream.format("kafka-share").option("servers", "127.0.0.1:9092").option(...)

Works against Barnabas and Apache Kafka 4.2 or later. `register` makes the formats known to a session:

    kafka-share   streaming: the records that a share group acquires, acknowledged after their micro-batch
    kafka-topic   batch and streaming: ordinary reads by offset or time, and a sink
    kafka-log     batch: data directories of Barnabas or Apache Kafka

The folders, each using only those below it; the commands do not use each other, nor do the sources:

    audit, export, ingest, replay              the commands of these names; `export` has `restore`, too
    tables                                     Parquet, Delta Lake or Iceberg; exact batches, compaction
    cli                                        the parts that all commands have
    log_source, share_source, topic_source     the formats, for reading
    topic_sink                                 `kafka-topic`, for writing
    decoding                                   record batches as Arrow columns, native or in Python

Importing this package does not load PySpark or PyArrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.errors import OptionError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OptionError", "PipelineError", "register"]


def register(spark: SparkSession) -> None:
    """Make the formats `kafka-share`, `kafka-topic` and `kafka-log` known to a session.

    Raises `PipelineError` if this Spark is older than the sources need.
    """
    from barnabas.pipeline.formats import register_formats

    register_formats(spark)
