"""Streams into topics from Spark, whose last batch is written again as after a crash, against both brokers.

Spark writes a batch again if its checkpoint lacks the file of the batch's commit. The tests remove this file,
as if the driver had been killed after the sink was done. `test_committing` has the crashes during the sink's
own commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.topic_sink.deduplication import deduplicated
from tests.clients.cluster import Cluster, numbered


def copy(
    spark: SparkSession, cluster: Cluster, source: str, target: str, checkpoint: Path, once: str
) -> list[int]:
    """Copies the present records of a topic to another, 40 at a time; returns the ids of the batches."""
    records = (
        spark.readStream.format("kafka-topic")
        .option("servers", cluster.bootstrap)
        .option("topics", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 40)
        .load()
        .select("key", "value")
    )
    query = (
        records.writeStream.format("kafka-topic")
        .option("servers", cluster.bootstrap)
        .option("topic", target)
        .option("exactlyOnce", once)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [one["batchId"] for one in query.recentProgress if one["numInputRows"]]


def read(spark: SparkSession, cluster: Cluster, topic: str) -> DataFrame:
    reader = spark.read.format("kafka-topic").option("servers", cluster.bootstrap).option("topics", topic)
    return reader.option("isolation", "read_committed").load()


def forget_last_batch(checkpoint: Path) -> None:
    """Leaves the checkpoint of a driver that was killed after the sink's commit."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("once", ["transactions", "header"])
def test_a_batch_that_is_written_again_counts_once(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, once: str
) -> None:
    source, target = cluster.topic(2), cluster.topic(2)
    cluster.produce(source, numbered(100))
    assert copy(spark, cluster, source, target, tmp_path, once) == [0, 1, 2]
    forget_last_batch(tmp_path)
    cluster.produce(source, numbered(20, "later"))
    assert copy(spark, cluster, source, target, tmp_path, once) == [2, 3]
    found = read(spark, cluster, target)
    expected = sorted([*numbered(100), *numbered(20, "later")])
    assert sorted(one.value.decode() for one in deduplicated(found).collect()) == expected
    is_marked = "barnabas.write" in str(found.select("headers").first())
    assert is_marked == (once == "header")
    if once == "transactions":
        assert found.count() == len(expected)
