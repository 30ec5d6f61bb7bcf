"""Spark's own Kafka connector, unmodified, reads from this broker and writes to it.

The connector's jars are a set picked by hand (`jars/pom.xml`). So the tests show only that the broker serves
the protocol as the connector needs it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.clients.cluster import Cluster, numbered
from tests.clients.confluent_polling import text
from tests.clients.polling import SECONDS_MAX, eventually

pytestmark = pytest.mark.parametrize("broker", ["barnabas"], indirect=True)

PARTITIONS = 3


def options(broker: LocalBroker, **given: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.address, **given}


def read(spark: SparkSession, broker: LocalBroker, topic: str, **given: str) -> DataFrame:
    return spark.read.format("kafka").options(**options(broker, subscribe=topic, **given)).load()


def stream(spark: SparkSession, broker: LocalBroker, topic: str, **given: str) -> DataFrame:
    given = {"startingOffsets": "earliest", **given}
    return spark.readStream.format("kafka").options(**options(broker, subscribe=topic, **given)).load()


def values(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr("cast(value as string)").collect())


def has_rows(spark: SparkSession, table: str, count: int) -> bool:
    return spark.table(table).count() == count


def run(query: StreamingQuery) -> None:
    """Let a query that ends by itself do so."""
    try:
        assert query.awaitTermination(round(SECONDS_MAX)), query.status
    finally:
        query.stop()


def consumed(broker: LocalBroker, topic: str, count: int) -> list[tuple[bytes | None, str, Any]]:
    """This number of records of a topic's only partition, read by confluent-kafka: key, value, headers."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "unused", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    taken: list[tuple[bytes | None, str, Any]] = []

    def take() -> bool:
        for message in consumer.consume(count, 0.5):
            assert message.error() is None
            taken.append((message.key(), text(message), message.headers()))
        return len(taken) >= count

    eventually(take, awaited=f"{count} records")
    consumer.close()
    return taken


def test_a_batch_read_sees_the_produced_records(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic = cluster.topic()
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce(topic, b"one", key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_123)
    producer.produce(topic, None, key=b"tombstone", timestamp=1_700_000_000_124)
    assert producer.flush(SECONDS_MAX) == 0
    found = read(spark, broker, topic, includeHeaders="true").orderBy("offset").collect()
    assert [(row.key, row.value, row.partition, row.offset, row.timestampType) for row in found] == [
        (b"k", b"one", 0, 0, 0),
        (b"tombstone", None, 0, 1, 0),
    ]
    assert [row.timestamp.timestamp() for row in found] == [1_700_000_000.123, 1_700_000_000.124]
    assert found[0].headers == [Row(key="h", value=b"1"), Row(key="h", value=None)]


def test_a_batch_read_can_begin_and_end_anywhere(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, numbered(100))
    start, end = json.dumps({topic: {"0": 40}}), json.dumps({topic: {"0": 60}})
    between = read(spark, broker, topic, startingOffsets=start, endingOffsets=end)
    assert values(between) == sorted(numbered(100)[40:60])
    assert values(read(spark, broker, topic, startingTimestamp="1")) == sorted(numbered(100))


def test_a_batch_read_is_dealt_out_over_partitions(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic = cluster.topic(PARTITIONS)
    cluster.produce(topic, numbered(5_000))
    frame = read(spark, broker, topic, minPartitions="6")
    assert frame.rdd.getNumPartitions() >= PARTITIONS
    assert values(frame) == sorted(numbered(5_000))


def test_share_state_in_the_log_is_not_seen(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(200, "before"))
    consumer = ShareConsumer({"bootstrap.servers": broker.address, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    taken: list[str] = []

    def take_some() -> bool:
        taken.extend(text(message) for message in consumer.poll(0.5))
        return len(taken) >= 200

    eventually(take_some, awaited="200 records")
    consumer.close()
    offsets = cluster.produce(topic, numbered(10, "after"))
    assert offsets[0] > 200, "the group's state is in the log"
    wanted = sorted([*numbered(200, "before"), *numbered(10, "after")])
    assert values(read(spark, broker, topic, failOnDataLoss="true")) == wanted


def test_a_stream_takes_present_records_and_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic(PARTITIONS)

    def drain() -> list[str]:
        query = (
            stream(spark, broker, topic, maxOffsetsPerTrigger="400")
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(str(tmp_path / "out"))
        )
        run(query)
        return values(spark.read.parquet(str(tmp_path / "out")))

    cluster.produce(topic, numbered(1_000, "first"))
    assert drain() == sorted(numbered(1_000, "first"))
    cluster.produce(topic, numbered(50, "second"))
    assert drain() == sorted([*numbered(1_000, "first"), *numbered(50, "second")])


def test_a_stream_follows_produced_records(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    query = (
        stream(spark, broker, topic)
        .writeStream.format("memory")
        .queryName("followed")
        .trigger(processingTime="100 milliseconds")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        for count in (100, 200, 300):
            cluster.produce(topic, numbered(100, f"before-{count}"))
            eventually(partial(has_rows, spark, "followed", count), awaited=f"{count} records")
    finally:
        query.stop()
    assert values(spark.table("followed")) == sorted(
        value for count in (100, 200, 300) for value in numbered(100, f"before-{count}")
    )


def test_a_batch_write_is_read_by_others(spark: SparkSession, broker: LocalBroker, cluster: Cluster) -> None:
    topic = cluster.topic()
    headers = [Row(key="h", value=b"1")]
    rows = [Row(key=b"k", value=b"one", headers=headers), Row(key=None, value=b"two", headers=None)]
    schema = "key binary, value binary, headers array<struct<key:string,value:binary>>"
    frame = spark.createDataFrame(rows, schema).coalesce(1)  # pyright: ignore[reportUnknownMemberType]
    frame.write.format("kafka").options(**options(broker, topic=topic, includeHeaders="true")).save()
    assert consumed(broker, topic, 2) == [(b"k", "one", [("h", b"1")]), (None, "two", None)]


def test_a_stream_write_is_read_by_others(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    source, target = cluster.topic(PARTITIONS), cluster.topic()
    cluster.produce(source, numbered(1_000))
    query = (
        stream(spark, broker, source)
        .select("key", "value")
        .writeStream.format("kafka")
        .options(**options(broker, topic=target))
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    run(query)
    assert sorted(value for _, value, _ in consumed(broker, target, 1_000)) == sorted(numbered(1_000))
