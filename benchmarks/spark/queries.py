"""The measured streaming queries: their sources, and the figures from their progress."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.clients.cluster import Cluster

DRAIN_SECONDS = 300.0
PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Reading:
    """The topic of a query, and the number of records in a micro-batch."""

    cluster: Cluster
    topic: str
    record_count: int
    records_per_batch: int
    record_locks: int
    """`share.partition.max.record.locks` of the groups."""

    def group(self) -> str:
        """A new share group that begins at the start of its topics."""
        return self.cluster.group(partition_max_record_locks=self.record_locks)


@dataclass(frozen=True)
class Batch:
    """One micro-batch with records, from the query's progress."""

    record_count: int
    start_seconds: float
    duration_ms: float


def kafka_share(spark: SparkSession, reading: Reading) -> DataFrame:
    """The source of this project."""
    options = {
        "servers": reading.cluster.bootstrap,
        "topics": reading.topic,
        "group": reading.group(),
        "maxRecordsPerBatch": str(reading.records_per_batch),
    }
    return spark.readStream.format("kafka-share").options(**options).load()


def by_offset(spark: SparkSession, reading: Reading) -> DataFrame:
    """The source of this project without a group."""
    options = {
        "servers": reading.cluster.bootstrap,
        "topics": reading.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(reading.records_per_batch),
    }
    return spark.readStream.format("kafka-topic").options(**options).load()


def spark_connector(spark: SparkSession, reading: Reading) -> DataFrame:
    """Spark's own connector, by offsets, because it does not support share groups."""
    options = {
        "kafka.bootstrap.servers": reading.cluster.bootstrap,
        "subscribe": reading.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(reading.records_per_batch),
    }
    return spark.readStream.format("kafka").options(**options).load()


def driver_held(spark: SparkSession, reading: Reading) -> DataFrame:
    """A share consumer on the driver."""
    options = {
        "servers": reading.cluster.bootstrap,
        "topic": reading.topic,
        "group": reading.group(),
        "maxRecordsPerBatch": str(reading.records_per_batch),
    }
    return spark.readStream.format("driver-held").options(**options).load()


def from_memory(spark: SparkSession, reading: Reading) -> DataFrame:
    """Without a broker: the cost of any source in Python."""
    reader = spark.readStream.format("from-memory")
    return reader.option("maxRecordsPerBatch", str(reading.records_per_batch)).load()


SOURCES: dict[str, Callable[[SparkSession, Reading], DataFrame]] = {
    "barnabas": kafka_share,
    "by-offset": by_offset,
    "connector": spark_connector,
    "driver-held": driver_held,
    "from-memory": from_memory,
}
"""By column of the report; `barnabas` is `kafka-share`."""


def to_nowhere(frame: DataFrame) -> DataStreamWriter:
    """Every row is created and dropped."""
    return frame.writeStream.format("noop")


def to_empty_function(frame: DataFrame) -> DataStreamWriter:
    """No row is created: the cost of a micro-batch remains."""
    return frame.writeStream.foreachBatch(_do_nothing)


def drained(writer: DataStreamWriter, record_count: int | None, batch_count: int | None) -> list[Batch]:
    """Run a query until it has read `record_count` records or had `batch_count` batches.

    Returns its batches.
    """
    with tempfile.TemporaryDirectory(prefix="benchmarks-checkpoint-") as checkpoint:
        query = writer.option("checkpointLocation", str(Path(checkpoint) / "query")).start()
        try:
            return _batches(query, record_count, batch_count)
        finally:
            query.stop()


def records_per_second(batches: Sequence[Batch]) -> float:
    """The speed from the second batch on: the first joins groups, compiles code and starts processes."""
    steady = batches[1:]
    if not steady:
        raise RuntimeError("the first micro-batch read all records: there is no second one to measure")
    seconds = steady[-1].start_seconds + steady[-1].duration_ms / 1000 - steady[0].start_seconds
    return sum(batch.record_count for batch in steady) / seconds


def _do_nothing(_frame: DataFrame, _batch_id: int) -> None:
    """An empty function."""


def _batches(query: StreamingQuery, record_count: int | None, batch_count: int | None) -> list[Batch]:
    deadline = time.monotonic() + DRAIN_SECONDS
    while True:
        if (error := query.exception()) is not None:
            raise RuntimeError(str(error)[:2000])
        batches = [_batch(progress) for progress in query.recentProgress if _has_data(progress)]
        done = sum(batch.record_count for batch in batches)
        if (record_count and done >= record_count) or (batch_count and len(batches) >= batch_count):
            return batches
        if time.monotonic() > deadline:
            raise RuntimeError(f"{done} records and {len(batches)} batches within {DRAIN_SECONDS} s")
        time.sleep(PAUSE_SECONDS)


def _has_data(progress: Any) -> bool:
    """Whether a trigger ran a batch; a trigger that only looked for records has no `addBatch`."""
    return "addBatch" in progress["durationMs"]


def _batch(progress: Any) -> Batch:
    start = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return Batch(progress["numInputRows"], start, progress["durationMs"]["triggerExecution"])
