"""A Spark job that uses each format once and reports the results; run by spark-submit, in its own process.

Its arguments are the address of a broker and names, as on a real cluster. Only `kafka-log` gets a directory,
because it reads files that the executors must see.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

REPORT = "REPORT "


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("address", "topic", "target", "group", "log-directory", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()

    from barnabas.pipeline import register

    register(spark)
    report: dict[str, Any] = {}
    for name, step in steps(spark, options).items():
        print(name, file=sys.stderr, flush=True)
        report[name] = step()
    print(REPORT + json.dumps(report), flush=True)
    spark.stop()


def steps(spark: SparkSession, options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """The steps, by their names in the report."""
    address, topic = options.address, options.topic
    return {
        "executors": lambda: executors(spark),
        "kafka-topic": lambda: summary(topic_frame(spark, address, topic)),
        "kafka-log": lambda: summary(log_frame(spark, options.log_directory, topic)),
        "kafka-share": lambda: share_values(spark, options),
        "kafka-topic sink": lambda: copied(spark, address, topic, options.target),
    }


def log_frame(spark: SparkSession, directory: str, topic: str) -> DataFrame:
    return spark.read.format("kafka-log").option("topics", topic).load(directory)


def copied(spark: SparkSession, address: str, topic: str, target: str) -> list[Any]:
    """The summary of the target after the topic was written to it."""
    writer = topic_frame(spark, address, topic).select("key", "value").write.format("kafka-topic")
    writer.option("servers", address).option("topic", target).mode("append").save()
    return summary(topic_frame(spark, address, target))


def topic_frame(spark: SparkSession, address: str, topic: str) -> DataFrame:
    return spark.read.format("kafka-topic").option("servers", address).option("topics", topic).load()


def share_values(spark: SparkSession, options: argparse.Namespace) -> list[Any]:
    """How many rows, and different values, a share group gives until nothing is left."""
    rows: list[Any] = []

    def take(frame: DataFrame, _batch_id: int) -> None:
        rows.extend(row[0] for row in frame.selectExpr("cast(value as string)").collect())

    query = (
        spark.readStream.format("kafka-share")
        .option("servers", options.address)
        .option("group", options.group)
        .option("topics", options.topic)
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", options.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [len(rows), len(set(rows))]


def summary(frame: DataFrame) -> list[Any]:
    """How many rows there are, and how many different values."""
    row = frame.selectExpr("count(*)", "count(distinct value)").collect()[0]
    return [row[0], row[1]]


def executors(spark: SparkSession) -> list[list[Any]]:
    """Where tasks ran: working directory, the file that Barnabas came from, whether decoding is native."""

    def look(_rows: Iterable[Any]) -> Iterator[tuple[str, str, bool]]:
        import barnabas
        from barnabas.pipeline.decoding import RecordDecoder

        yield str(Path.cwd()), str(barnabas.__file__), RecordDecoder.is_native

    # The tasks of a barrier run at the same time, and each executor has one core.
    found = spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(look).collect()
    return [list(one) for one in sorted(set(found))]


if __name__ == "__main__":
    main()
