"""From a broker into a table, end to end: each record once, over cuts and restarts."""

import json
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.pipeline.ingest import (
    IngestOptions,
    ValueOptions,
    WrittenBatch,
    batch_writer,
    ingest,
)
from barnabas.pipeline.ingest.streaming import read_source, table_schema
from barnabas.pipeline.tables import TableOptions
from tests.clients.cluster import Cluster, numbered


def options(tmp_path: Path, source: str, given: dict[str, str], **more: Any) -> IngestOptions:
    return IngestOptions(
        source=source,  # type: ignore[arg-type]
        source_options=given,
        table=TableOptions(location=str(tmp_path / "table"), partition_by=["date", "topic"]),
        checkpoint=str(tmp_path / "checkpoint"),
        **more,
    )


@pytest.fixture(params=["kafka-share", "kafka-topic"])
def source(request: pytest.FixtureRequest, cluster: Cluster) -> tuple[str, dict[str, str], str]:
    """A source's name, its options, and the topic that it reads."""
    topic = cluster.topic(2)
    given = {"servers": cluster.bootstrap, "topics": topic}
    if request.param == "kafka-share":
        return request.param, {**given, "group": cluster.group()}, topic
    return request.param, {**given, "startingOffsets": "earliest"}, topic


def run(spark: SparkSession, wanted: IngestOptions, **more: Any) -> list[WrittenBatch]:
    written: list[WrittenBatch] = []
    query = ingest(spark, wanted, at_batch=written.append, **more)
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return written


def values(spark: SparkSession, wanted: IngestOptions, column: str = "string(value)") -> list[Any]:
    return sorted(row[0] for row in spark.read.parquet(wanted.table.location).selectExpr(column).collect())


def test_records_are_in_the_table_once_over_cuts_and_restarts(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, source: tuple[str, dict[str, str], str]
) -> None:
    name, given, topic = source
    wanted = options(tmp_path, name, given)
    first = numbered(30, "first")
    cluster.produce(topic, first)

    def cut(_written: WrittenBatch) -> None:
        raise RuntimeError("cut behind the commit, before Spark knows")

    query = ingest(spark, wanted, at_batch=cut)
    with pytest.raises(StreamingQueryException, match="cut behind the commit"):
        query.awaitTermination()
    again = run(spark, wanted)
    assert again[0].is_repeated
    assert again[0].record_count == 30
    assert values(spark, wanted) == sorted(first)

    more = numbered(20, "more")
    cluster.produce(topic, more)
    written = run(spark, wanted)
    assert sum(batch.record_count or 0 for batch in written) == 20
    assert values(spark, wanted) == sorted([*first, *more])
    assert values(spark, wanted, "topic") == [topic] * 50


def test_a_checkpoint_that_is_older_than_the_table_loses_nothing(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, source: tuple[str, dict[str, str], str]
) -> None:
    name, given, topic = source
    wanted = options(tmp_path, name, given)
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    cluster.produce(topic, ["first"])
    run(spark, wanted)
    copytree(checkpoint, copy)
    cluster.produce(topic, ["second"])
    run(spark, wanted)

    checkpoint.rename(tmp_path / "latest")
    copytree(copy, checkpoint)
    cluster.produce(topic, ["third"])
    with pytest.raises(StreamingQueryException, match="the checkpoint is older than the table"):
        run(spark, wanted)
    assert values(spark, wanted) == ["first", "second"]

    rmtree(checkpoint)
    (tmp_path / "latest").rename(checkpoint)
    run(spark, wanted)
    assert values(spark, wanted) == ["first", "second", "third"]


def test_a_stream_of_the_callers_own_has_to_name_its_checkpoint(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, ["one"])
    given = {"servers": cluster.bootstrap, "topics": topic, "startingOffsets": "earliest"}
    wanted = options(tmp_path, "kafka-topic", given)
    stream = read_source(spark, wanted).writeStream.foreachBatch(batch_writer(spark, wanted))
    query = stream.option("checkpointLocation", str(tmp_path / "another")).trigger(availableNow=True).start()
    with pytest.raises(
        StreamingQueryException, match=r"checkpoint: file:.*checkpoint/offsets/0 is not there"
    ):
        query.awaitTermination()


def test_values_that_do_not_fit_are_rejected_and_do_not_stall_the_group(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    schema = tmp_path / "order.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}}))
    topic = cluster.topic()
    cluster.produce(topic, ['{"id": 1}', "nonsense", '{"id": 2}'])
    given = {"servers": cluster.bootstrap, "topics": topic, "group": cluster.group()}
    given["ackDir"] = str(tmp_path / "acks")
    wanted = options(
        tmp_path, "kafka-share", given, values=ValueOptions(schema_file=str(schema)), invalid="reject"
    )
    written = run(spark, wanted)
    assert sum(batch.invalid_count or 0 for batch in written) == 1
    cluster.produce(topic, ['{"id": 3}'])
    assert sum(batch.invalid_count or 0 for batch in run(spark, wanted)) == 0, "it was not delivered again"
    assert values(spark, wanted, "value.id") == [1, 2, 3]


def test_the_columns_are_known_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    wanted = options(tmp_path, "kafka-share", {"servers": "127.0.0.1:1", "topics": "t", "group": "g"})
    assert table_schema(spark, wanted)["date"].dataType.simpleString() == "date"
