"""Each record once, of a topic that was written with the header: what a reader does where brokers have no
transactions.

A batch that is written again has its records twice in the log, with equal headers `barnabas.write`: query id,
batch id, task, row, and a checksum of the contents. Equal ones are one record. That holds as far as Spark
makes a batch again in the same way, which it does for rows that come straight from `kafka-share`,
`kafka-topic` or files; where a row's place has changed, its checksum tells, both are kept, and none is lost.
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
    """The records without those that are there again; records without the header are all kept.

    `records` come from `kafka-topic`, `kafka-log` or `kafka-share`, with the columns `NEEDED` and any others.
    In a stream Spark remembers each header for ever, unless the query bounds that with
    `dropDuplicatesWithinWatermark` of its own. Raises `PipelineError` if a column is missing.
    """
    from pyspark.sql import functions as f

    missing = [one for one in NEEDED if one not in records.columns]
    if missing:
        raise PipelineError(f"To tell records apart, {', '.join(missing)} must be among the columns.")
    marks = f.filter("headers", lambda header: header["key"] == WRITE_HEADER)
    place = f.concat_ws("/", f.col("topic"), f.col("partition"), f.col("offset"))
    identity = f.coalesce(f.get(marks, f.lit(0))["value"].cast("string"), place)
    return records.withColumn(_IDENTITY, identity).dropDuplicates([_IDENTITY]).drop(_IDENTITY)
