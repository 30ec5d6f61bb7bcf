"""The measurements of streaming queries, and their targets."""

import statistics
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import SparkSession
from tests.clients.cluster import Cluster

from benchmarks.measurement import Metrics, Scale, Target, percentile
from benchmarks.spark.queries import (
    SOURCES,
    Reading,
    drained,
    records_per_second,
    to_empty_function,
    to_nowhere,
)

PARTITIONS = 4
VALUE_BYTES = 100
RECORD_LOCKS = 200_000
"""Locks per partition, enough for the intended size of a micro-batch."""


class SparkWorkload:
    """One kind of query with each source in turn: `prepare` once, then `measure` any number of times."""

    name: ClassVar[str]
    targets: ClassVar[Sequence[Target]]
    sources: ClassVar[Sequence[str]] = tuple(SOURCES)
    record_count: ClassVar[int]
    records_per_batch: ClassVar[int]

    def __init__(self, spark: SparkSession, bootstrap: str, scale: Scale) -> None:
        self._spark = spark
        self._cluster = Cluster(bootstrap)
        self._scale = scale
        self._topic = ""

    def prepare(self) -> None:
        """Fill a topic."""
        self._topic = self._cluster.topic(PARTITIONS)
        value = bytes(VALUE_BYTES)
        count = self._scale.records(self.record_count)
        self._cluster.produce(self._topic, (value for _ in range(count)), queue_buffering_max_messages=count)

    @abstractmethod
    def measure(self, source: str) -> Metrics:
        """One run."""

    def reading(self) -> Reading:
        return Reading(
            self._cluster,
            self._topic,
            self._scale.records(self.record_count),
            self.records_per_batch,
            RECORD_LOCKS,
        )


class _Draining(SparkWorkload):
    targets = (
        Target("records_per_second", ">=", 1.0, against="connector"),
        Target("records_per_second", ">=", 3.0, against="driver-held"),
    )

    def measure(self, source: str) -> Metrics:
        reading = self.reading()
        frame = SOURCES[source](self._spark, reading)
        batches = drained(to_nowhere(frame), reading.record_count, None)
        counts = [batch.record_count for batch in batches]
        return {
            "records_per_second": records_per_second(batches),
            "records_per_batch": statistics.median(counts),
            "batch_p50_ms": statistics.median(batch.duration_ms for batch in batches[1:]),
        }


class SmallBatches(_Draining):
    """Micro-batches of 8,000 records, which Kafka's default of 2,000 locks allows with four partitions."""

    name = "8,000 records a batch"
    record_count = 240_000
    records_per_batch = 8_000


class LargeBatches(_Draining):
    """Micro-batches of 100,000 records."""

    name = "100,000 records a batch"
    record_count = 1_500_000
    records_per_batch = 100_000


class EmptyFunction(SparkWorkload):
    """The cost of a micro-batch itself, from its trigger to its commit."""

    name = "empty function"
    targets = (Target("batch_p50_ms", "<=", 300),)
    sources = ("barnabas", "connector")
    record_count = 20_000
    records_per_batch = 100
    batch_count_max: ClassVar[int] = 60

    def measure(self, source: str) -> Metrics:
        reading = self.reading()
        batch_count = min(self.batch_count_max, reading.record_count // reading.records_per_batch)
        writer = to_empty_function(SOURCES[source](self._spark, reading))
        durations = [batch.duration_ms for batch in drained(writer, None, batch_count)[1:]]
        return {"batch_p50_ms": statistics.median(durations), "batch_p90_ms": percentile(durations, 0.9)}


WORKLOADS: dict[str, type[SparkWorkload]] = {
    "small-batches": SmallBatches,
    "large-batches": LargeBatches,
    "empty-function": EmptyFunction,
}
"""By name on the command line."""
