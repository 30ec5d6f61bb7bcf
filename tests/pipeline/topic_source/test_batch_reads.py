"""Batch reads of topics in Spark, against both brokers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.clients.cluster import Cluster, numbered


def read(spark: SparkSession, cluster: Cluster, topic: str, **options: object) -> DataFrame:
    """A batch read of a topic; options are given as strings."""
    reader = spark.read.format("kafka-topic").option("servers", cluster.bootstrap).option("topics", topic)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def values(rows: DataFrame) -> list[str]:
    """The values of the records, by partition and offset."""
    ordered = rows.selectExpr("partition", "offset", "cast(value as string) as value").collect()
    return [row.value for row in sorted(ordered)]


def tasks(rows: DataFrame) -> int:
    return rows.rdd.getNumPartitions()


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """A topic of one partition with a hundred records, ten to a batch."""
    name = cluster.topic()
    for start in range(0, 100, 10):
        cluster.produce(name, numbered(100)[start : start + 10])
    return name


def test_all_records_come_with_all_columns(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    rows = read(spark, cluster, topic)
    assert rows.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    assert values(rows) == numbered(100)
    first: Any = rows.filter("offset = 0").head()
    assert (first.key, first.topic, first.partition, first.timestampType) == (None, topic, 0, 0)
    assert abs(first.timestamp.replace(tzinfo=UTC) - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": 90}, range(90, 100)),
        ({"startingOffsets": 20, "endingOffsets": 25}, range(20, 25)),
        ({"endingOffsets": 3}, range(3)),
        ({"startingOffsets": -2, "endingOffsets": -1, "minPartitions": 7}, range(100)),
        ({"startingOffsets": 99, "endingOffsets": 99}, range(0)),
    ],
)
def test_offsets_bound_a_read(
    spark: SparkSession, cluster: Cluster, topic: str, options: dict[str, int], expected: Sequence[int]
) -> None:
    given = {
        name: f'{{"{topic}": {{"0": {value}}}}}' if name.endswith("Offsets") else value
        for name, value in options.items()
    }
    rows = read(spark, cluster, topic, columns="partition,offset,value", **given)
    assert values(rows) == [numbered(100)[number] for number in expected]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("offset >= 95 and partition = 0", 5),
        ("offset in (3, 50)", 2),
        ("timestamp < '2020-01-01'", 0),
        ("timestamp > '2020-01-01' and offset < 10", 10),
    ],
)
def test_filters_select_the_same_records_as_spark(
    spark: SparkSession, cluster: Cluster, topic: str, condition: str, count: int
) -> None:
    assert read(spark, cluster, topic).filter(condition).count() == count


def test_without_pushdown_spark_filters_itself(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    assert read(spark, cluster, topic, pushdown=False).filter("offset >= 95").count() == 5


def test_a_scan_is_split_into_tasks(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    assert tasks(read(spark, cluster, topic)) == 1
    assert tasks(read(spark, cluster, topic, minPartitions=4)) == 4
