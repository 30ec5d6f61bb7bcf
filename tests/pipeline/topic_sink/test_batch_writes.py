"""Batch writes to topics from Spark, read back by other clients and by the format itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.topic_sink.deduplication import deduplicated
from tests.clients.cluster import Cluster
from tests.clients.polling import SECONDS_MAX


def write(rows: DataFrame, cluster: Cluster, **options: object) -> None:
    writer = rows.write.format("kafka-topic").option("servers", cluster.bootstrap).mode("append")
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save()


def read(spark: SparkSession, cluster: Cluster, topic: str, **options: object) -> DataFrame:
    reader = spark.read.format("kafka-topic").option("servers", cluster.bootstrap).option("topics", topic)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def frame(spark: Any, rows: list[Any], schema: str) -> DataFrame:
    """Rows of a test's own; the session's types leave this method half unknown."""
    made: DataFrame = spark.createDataFrame(rows, schema)
    return made


def test_written_rows_are_read_again(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(2)
    when = datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
    rows: list[Any] = [
        (b"k", b"v", [("h", b"1"), ("h", None)], 1, when),
        (None, None, None, 0, when),
        (b"", b"", [], 0, when),
    ]
    headers = "headers array<struct<key:string,value:binary>>"
    schema = f"key binary, value binary, {headers}, partition int, timestamp timestamp"
    write(
        frame(spark, rows, schema).coalesce(1),
        cluster,
        topic=topic,
        compression="lz4",
        exactlyOnce="off",
    )
    found = read(spark, cluster, topic, isolation="read_committed").sort("partition", "offset").collect()
    assert [(one.key, one.value, one.partition, one.offset) for one in found] == [
        (None, None, 0, 0),
        (b"", b"", 0, 1),
        (b"k", b"v", 1, 0),
    ]
    assert [tuple(header) for header in found[2].headers] == [("h", b"1"), ("h", None)]
    assert all(one.timestamp.astimezone(UTC) == when for one in found)


def test_records_with_keys_go_where_other_producers_send_them(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(5)
    keys = [f"key-{number}" for number in range(50)]
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(topic, b"other", key)
    assert producer.flush(SECONDS_MAX) == 0
    write(
        frame(spark, [(key, "ours") for key in keys], "key string, value string"),
        cluster,
        topic=topic,
    )
    found = read(spark, cluster, topic, isolation="read_committed").select("key", "partition").distinct()
    assert found.count() == 50


def test_records_without_keys_go_round(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic(3)
    rows = spark.range(300).selectExpr("cast(id as string) as value").coalesce(1)
    write(rows, cluster, topic=topic, batchBytes=500)
    counts = read(spark, cluster, topic, isolation="read_committed").groupBy("partition").count().collect()
    assert len(counts) == 3
    assert sum(one["count"] for one in counts) == 300


def test_rows_name_their_topics(spark: SparkSession, cluster: Cluster) -> None:
    topics = [cluster.topic(), cluster.topic()]
    rows = [(topics[number % 2], str(number)) for number in range(10)]
    write(frame(spark, rows, "topic string, value string"), cluster)
    for topic, odd in zip(topics, (0, 1), strict=True):
        found = read(spark, cluster, topic, isolation="read_committed").collect()
        assert sorted(int(one.value) for one in found) == list(range(odd, 10, 2))


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, cluster: Cluster) -> None:
    with pytest.raises(PySparkException, match="There is no topic no-such-topic"):
        write(spark.sql("select 'v' as value"), cluster, topic="no-such-topic")


def test_a_misspelt_option_is_named(spark: SparkSession, cluster: Cluster) -> None:
    with pytest.raises(PySparkException, match="did you mean compression"):
        write(spark.sql("select 'v' as value"), cluster, topic="orders", compresion="lz4")


def test_a_marked_record_that_was_written_twice_counts_once(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    rows = spark.range(20).selectExpr("cast(id as string) as value").coalesce(1)
    write(rows, cluster, topic=topic, exactlyOnce="header")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for one in read(spark, cluster, topic).collect():
        headers: list[tuple[str, str | bytes | None]] = [
            (header.key, bytes(header.value)) for header in one.headers
        ]
        producer.produce(topic, bytes(one.value), headers=headers)
    assert producer.flush(SECONDS_MAX) == 0
    found = read(spark, cluster, topic)
    assert found.count() == 40
    assert sorted(int(one.value) for one in deduplicated(found).collect()) == list(range(20))
