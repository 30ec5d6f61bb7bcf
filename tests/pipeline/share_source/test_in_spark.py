"""`format("kafka-share")` in Spark: progress, acknowledgement by a column, a function for each record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.share_source import acknowledge_by_column, process_records
from tests.clients.cluster import Cluster, numbered
from tests.clients.polling import SECONDS_MAX, eventually


def run(
    spark: SparkSession,
    options: dict[str, Any],
    checkpoint: Path,
    function: Callable[[DataFrame, int], None],
) -> StreamingQuery:
    """A run with Trigger.AvailableNow, to its end."""
    reading = spark.readStream.format("kafka-share")
    for name, value in options.items():
        reading = reading.option(name, value)
    writing = reading.load().writeStream.foreachBatch(function)
    query = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(round(SECONDS_MAX)), "the query doesn't end"
    finally:
        query.stop()
    return query


def is_deleted(cluster: Cluster, group: str) -> bool:
    """Delete the group, if it has no members, or find that an attempt before has done so."""
    (deleted,) = cluster.admin.delete_consumer_groups([group]).values()
    error = deleted.exception()
    return error is None or error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def nothing(_batch: DataFrame, _batch_id: int) -> None:
    """A sink that ignores all rows."""


def reading_of(cluster: Cluster, topic: str, **options: object) -> dict[str, Any]:
    return {"servers": cluster.bootstrap, "group": cluster.group(), "topics": topic, **options}


def test_the_progress_counts_acquired_records_and_their_outcomes(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic(2)
    cluster.produce(topic, numbered(100))
    seen: list[int] = []
    options = reading_of(cluster, topic, maxRecordsPerBatch=40, columns="offset,value")
    query = run(spark, options, tmp_path / "checkpoint", lambda batch, _: seen.append(batch.count()))
    assert sum(seen) == 100
    assert max(seen) <= 40
    assert query.lastProgress is not None
    (source,) = json.loads(query.lastProgress.json)["sources"]
    metrics = source["latestOffset"]
    assert metrics["acquired"] == metrics["emitted"] == 100
    assert metrics["deduplicated"] == metrics["expired"] == 0
    assert set(metrics) >= {"renewed", "released", "rejected", "lag"}
    assert source["endOffset"]["metrics"]["emitted"] == 100
    # The group has no members: the reader has left, long before its session could time out.
    eventually(lambda: is_deleted(cluster, options["group"]), awaited="the group is left")


def test_records_are_accepted_released_and_rejected_by_a_column(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, numbered(6))
    acks = str(tmp_path / "acks")
    seen: list[tuple[int, int]] = []

    def decide(batch: DataFrame, _: int) -> DataFrame:
        seen.extend((row.offset, row.deliveryCount) for row in batch.collect())
        release = "when offset = 4 and deliveryCount < 3 then 'release'"
        ack = f"case when offset = 1 then 'reject' {release} end as ack"
        return batch.selectExpr("topic", "partition", "offset", ack)

    options = reading_of(cluster, topic, ackDir=acks)
    run(spark, options, tmp_path / "checkpoint", acknowledge_by_column(decide, ack_dir=acks))
    assert sorted(seen) == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (4, 3), (5, 1)]


@pytest.mark.parametrize("on_error", ["reject", "sideTable"])
def test_a_record_that_breaks_the_function_does_not_stall_the_stream(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, on_error: Any
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, ['{"id": 1}', "no json", '{"id": "no number"}', '{"id": 4}'])
    acks, side = str(tmp_path / "acks"), str(tmp_path / "side")
    written: dict[int, list[int]] = {}

    def write(results: DataFrame, batch_id: int) -> None:
        written[batch_id] = [row.id for row in results.collect()]

    def parse(record: dict[str, Any]) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(record["value"])
        return parsed

    function = process_records(
        parse, schema="id bigint", write=write, on_error=on_error, ack_dir=acks, side_table=side
    )
    options = reading_of(cluster, topic, ackDir=acks)
    run(spark, options, tmp_path / "checkpoint", function)
    assert sorted(one for ids in written.values() for one in ids) == [1, 4]
    failures = {row.offset: row.error for row in spark.read.parquet(side).collect()}
    assert set(failures) == {1, 2}
    assert failures[1].startswith("JSONDecodeError: ")
    batches: list[int] = []
    run(spark, options, tmp_path / "checkpoint", lambda _, batch_id: batches.append(batch_id))
    assert batches == [], "the group was not done with everything"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "drop"}, "^on_error: 'drop' is not"),
        ({"on_error": "reject"}, "^ack_dir: is needed"),
        ({"on_error": "sideTable"}, "^side_table: is needed"),
    ],
    ids=str,
)
def test_on_error_without_its_arguments_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        process_records(dict, schema="id int", write=nothing, **options)
