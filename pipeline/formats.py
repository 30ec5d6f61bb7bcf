"""Registers the formats in a Spark session, if PySpark is installed and new enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

SPARK_VERSION_MIN: Final = (4, 2)
"""The first with admission control for sources in Python."""


_FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register_formats(spark: SparkSession) -> None:
    """Registers every format, and turns on filter pushdown. Raises `PipelineError` on an older Spark."""
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    if version < SPARK_VERSION_MIN:
        needed = ".".join(map(str, SPARK_VERSION_MIN))
        raise PipelineError(f"Spark {spark.version} is too old: install pyspark {needed} or later.")
    for source in _sources():
        spark.dataSource.register(source)
    spark.conf.set(_FILTER_PUSHDOWN, "true")


def _sources() -> list[type[DataSource]]:
    from barnabas.pipeline.log_source.source import LogSource
    from barnabas.pipeline.share_source.source import ShareDataSource
    from barnabas.pipeline.topic_source.source import TopicSource

    return [LogSource, ShareDataSource, TopicSource]
