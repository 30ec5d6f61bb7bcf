"""Streaming reads of topics in Spark, against both brokers: queries that are stopped and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.clients.cluster import Cluster, confluent_admin, numbered
from tests.clients.polling import eventually


def run(spark: SparkSession, cluster: Cluster, directory: Path, **options: object) -> list[int]:
    """Read all that is there in micro-batches into files; how many records each of them had."""
    reader = spark.readStream.format("kafka-topic").option("servers", cluster.bootstrap)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    query = (
        reader.load()
        .selectExpr("topic", "partition", "offset", "cast(value as string) as value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .option("path", str(directory / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]


def rows(spark: SparkSession, directory: Path) -> list[str]:
    found = spark.read.parquet(str(directory / "rows")).collect()
    assert len({(one.topic, one.partition, one.offset) for one in found}) == len(found)
    return sorted(one.value for one in found)


def settle(futures: dict[str, Any]) -> None:
    """Waits for the results of the admin client."""
    for future in futures.values():
        future.result()


def made_anew(cluster: Cluster, topic: str) -> bool:
    """Whether a topic of this name can be made: one that was deleted may take a moment to go."""
    try:
        settle(cluster.admin.create_topics([confluent_admin.NewTopic(topic, 1, 1)]))
    except KafkaException:
        return False
    return True


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.topic(2)
    cluster.produce(topic, numbered(90, "first"))
    counts = run(spark, cluster, tmp_path, topics=topic, startingOffsets="earliest", maxOffsetsPerTrigger=40)
    assert (sum(counts), max(counts)) == (90, 40)
    cluster.produce(topic, numbered(30, "second"))
    settle(cluster.admin.create_partitions([confluent_admin.NewPartitions(topic, 3)]))
    cluster.produce(topic, numbered(30, "third"))
    assert sum(run(spark, cluster, tmp_path, topics=topic)) == 60
    assert rows(spark, tmp_path) == sorted(
        [*numbered(90, "first"), *numbered(30, "second"), *numbered(30, "third")]
    )


def test_a_topic_that_was_created_again_is_data_loss(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, numbered(5, "old"))
    run(spark, cluster, tmp_path, topicsPattern=topic, startingOffsets="earliest")
    settle(cluster.admin.delete_topics([topic]))
    eventually(lambda: made_anew(cluster, topic), awaited="the topic is made anew")
    cluster.produce(topic, numbered(7, "new"))
    with pytest.raises(StreamingQueryException, match="was deleted and created again"):
        run(spark, cluster, tmp_path, topicsPattern=topic)
    run(spark, cluster, tmp_path, topicsPattern=topic, failOnDataLoss=False)
    found = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(one.value for one in found) == sorted([*numbered(5, "old"), *numbered(7, "new")])
