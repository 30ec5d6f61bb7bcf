"""Drops repeated records by the sink's header, for brokers without transactions.

A batch that is written again has its records twice in the log, with equal headers `barnabas.write`: query id,
batch id, task, row, and a checksum of the contents. Records with equal headers are one record. That requires
that Spark makes a batch again in the same way, which it does for rows that come straight from `kafka-share`,
`kafka-topic` or files. If a row has changed its place, the checksum differs: both records are kept, and none
is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.topic_sink.encoding import WRITE_HEADER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEEDED: Final = ("topic", "partition", "offset", "headers")

_IDENTITY: Final = "__barnabas_write"


def deduplicated(records: DataFrame) -> DataFrame:
    """The records without repetitions; records without the header are all kept.

    `records` come from `kafka-topic`, `kafka-log` or `kafka-share`, with the columns `NEEDED` and any others.
    In a stream Spark remembers each header for ever, unless the query itself bounds that with
    `dropDuplicatesWithinWatermark`. Raises `PipelineError` if a column is missing.
    """
    from pyspark.sql import functions as f

    missing = [column for column in NEEDED if column not in records.columns]
    if missing:
        raise PipelineError(f"To tell records apart, {', '.join(missing)} must be among the columns.")
    marks = f.filter("headers", lambda header: header["key"] == WRITE_HEADER)
    place = f.concat_ws("/", f.col("topic"), f.col("partition"), f.col("offset"))
    identity = f.coalesce(f.get(marks, f.lit(0))["value"].cast("string"), place)
    return records.withColumn(_IDENTITY, identity).dropDuplicates([_IDENTITY]).drop(_IDENTITY)
