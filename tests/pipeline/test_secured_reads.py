"""The formats against an Apache Kafka that requires TLS and a login, and the error of a refused login."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import SECONDS_MAX
from tests.clients.secured_kafka import PASSWORD, Secured, secured

__all__ = ["secured"]

RECORDS = 500


def options(secured: Secured, **changes: str) -> dict[str, str]:
    """The options that a format needs for access; `changes` are those of `Secured.settings`."""
    settings = secured.settings("SASL_SSL", **changes)
    kafka = {f"kafka.{name}": value for name, value in settings.items()}
    return {"servers": secured.kafka.at("SASL_SSL"), **kafka}


def read(spark: SparkSession, secured: Secured, topic: str, **changes: str) -> DataFrame:
    given = options(secured, **changes)
    return spark.read.format("kafka-topic").options(**given).option("topics", topic).load()


def test_a_topic_is_read(spark: SparkSession, secured: Secured) -> None:
    cluster = Cluster(secured.kafka.address)
    topic = cluster.topic(2)
    cluster.produce(topic, numbered(RECORDS))
    assert read(spark, secured, topic).count() == RECORDS


def test_a_share_group_is_drained(spark: SparkSession, secured: Secured, tmp_path: Path) -> None:
    cluster = Cluster(secured.kafka.address)
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(RECORDS))
    stream = spark.readStream.format("kafka-share").options(**options(secured))
    query = (
        stream.option("topics", topic)
        .option("group", group)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    try:
        assert query.awaitTermination(round(SECONDS_MAX))
    finally:
        query.stop()
    assert spark.read.parquet(str(tmp_path / "out")).count() == RECORDS


def test_a_wrong_password_is_one_error_without_any_password_in_it(
    spark: SparkSession, secured: Secured
) -> None:
    topic = Cluster(secured.kafka.address).topic()
    with pytest.raises(PySparkException) as refused:
        read(spark, secured, topic, sasl__password="guessed").count()
    assert "does not let alice in: " in str(refused.value)
    assert "guessed" not in str(refused.value)
    assert PASSWORD not in str(refused.value)
