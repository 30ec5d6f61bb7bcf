"""Records go from tables and topics back to topics: chosen, changed, once, and from where a run stopped."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.ingest import BatchWriter
from barnabas.pipeline.replay import ReplayOptions, ReplayStep, replay
from barnabas.pipeline.tables import CompactOptions, TableOptions, compact
from barnabas.pipeline.tables.opening import open_table
from tests.clients.cluster import Cluster


class StopError(Exception):
    """The process ends here."""


def rows(spark: SparkSession, count: int) -> DataFrame:
    """Rows as a source has them: offset n, key kn, value vn, at n seconds, in partition n % 2."""
    return spark.range(count).selectExpr(
        "cast(concat('k', id) as binary) as key",
        "cast(concat('v', id) as binary) as value",
        "'before: 100%' as topic",
        "cast(id % 2 as int) as partition",
        "id as offset",
        "timestamp_seconds(id) as timestamp",
        "array(named_struct('key', 'h', 'value', cast(string(id) as binary))) as headers",
    )


def written(spark: SparkSession, cluster: Cluster, topic: str) -> list[Any]:
    """The committed records of a topic."""
    options = {"servers": cluster.bootstrap, "topics": topic, "isolation": "read_committed"}
    return spark.read.format("kafka-topic").options(**options).load().orderBy("value").collect()


def values(spark: SparkSession, cluster: Cluster, topic: str) -> list[str]:
    return [bytes(row["value"]).decode() for row in written(spark, cluster, topic)]


def make_table(spark: SparkSession, tmp_path: Path, count: int, format_: Any = "parquet") -> TableOptions:
    """A table of two batches; partitioned, so that topic and date stand in the directories' names."""
    location, storage = str(tmp_path / "topic=above" / "a table"), {}
    if format_ == "iceberg":
        location = "lake.orders"
        catalog = f"sqlite:///{tmp_path}/catalog.db"
        storage = {"type": "sql", "uri": catalog, "warehouse": tmp_path.as_uri()}
    options = TableOptions(
        location=location, format=format_, storage=storage, partition_by=["topic", "partition"]
    )
    writer = BatchWriter(open_table(spark, options), query="q")
    all_rows = rows(spark, count)
    writer(all_rows.where(f"offset < {count // 2}"), 0)
    writer(all_rows.where(f"offset >= {count // 2}"), 1)
    return options


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> TableOptions:
    return make_table(spark, tmp_path, 8)


def options(cluster: Cluster, topic: str, tmp_path: Path, **more: Any) -> ReplayOptions:
    return ReplayOptions(
        sink_options={"servers": cluster.bootstrap, "topic": topic},
        progress=str(tmp_path / "progress"),
        **more,
    )


@pytest.mark.parametrize("format_", ["parquet", "delta", "iceberg"])
def test_a_table_is_replayed_with_keys_headers_and_where_it_came_from(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, format_: str
) -> None:
    table = make_table(spark, tmp_path, 8, format_)
    topic = cluster.topic(2)
    wanted = options(cluster, topic, tmp_path, table=table, keep_timestamps=True, keep_partitions=True)
    done = replay(spark, wanted)
    assert (done.row_count, done.record_count) == (8, 8)
    found = written(spark, cluster, topic)
    assert [bytes(row["key"]).decode() for row in found] == [f"k{number}" for number in range(8)]
    assert [row["partition"] for row in found] == [number % 2 for number in range(8)]
    assert [row["timestamp"].second for row in found] == list(range(8))
    first, came_from = found[5]["headers"][:2]
    assert (first["key"], bytes(first["value"])) == ("h", b"5")
    assert came_from["key"] == "barnabas.replayed.from"
    expected = {"from": table.location, "topic": "before: 100%", "partition": 1, "offset": 5}
    assert json.loads(bytes(came_from["value"])) == expected


def test_a_replay_goes_on_where_it_stopped(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    wanted = options(cluster, topic, tmp_path, table=table, chunk_records=3)

    def stop_after_one(step: ReplayStep) -> None:
        if step.rows_done:
            raise StopError

    with pytest.raises(StopError):
        replay(spark, wanted, at_step=stop_after_one)
    done = replay(spark, wanted)
    assert done.resumed_at == 1
    assert values(spark, cluster, topic) == [f"v{number}" for number in range(8)]
    assert replay(spark, wanted).resumed_at == done.chunk_count, "there is nothing left to do"
    assert len(values(spark, cluster, topic)) == 8


def test_a_chunk_that_was_written_and_not_noted_counts_once(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    wanted = options(cluster, topic, tmp_path, table=table)
    replay(spark, wanted)
    (tmp_path / "progress" / "done" / "1").unlink()
    replay(spark, wanted)
    found = values(spark, cluster, topic)
    if len(found) == 16:
        from barnabas.pipeline.topic_sink.deduplication import deduplicated

        read = spark.read.format("kafka-topic").option("servers", cluster.bootstrap).option("topics", topic)
        found = sorted(bytes(row["value"]).decode() for row in deduplicated(read.load()).collect())
    assert found == [f"v{number}" for number in range(8)]


def test_records_are_chosen_by_expression_time_and_partition(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    wanted = options(
        cluster, topic, tmp_path, table=table, where="offset <> 3", from_ms=1000, to_ms=7000, partitions=[1]
    )
    assert replay(spark, wanted).record_count == 2
    assert values(spark, cluster, topic) == ["v1", "v5"]


def test_a_dry_run_counts_and_writes_nothing(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    done = replay(spark, options(cluster, topic, tmp_path, table=table, where="offset < 5", dry_run=True))
    assert (done.row_count, done.record_count, done.is_dry_run) == (8, 5, True)
    assert values(spark, cluster, topic) == []
    assert not (tmp_path / "progress").exists()


def test_a_topic_is_replayed_up_to_its_end_at_the_plan(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    source, topic = cluster.topic(2), cluster.topic()
    cluster.produce(source, [f"v{number}" for number in range(5)])
    read = {"servers": cluster.bootstrap, "topics": source}
    wanted = options(cluster, topic, tmp_path, topic_options=read, chunk_records=2, where="value <> 'v3'")
    assert replay(spark, wanted).record_count == 4
    assert values(spark, cluster, topic) == ["v0", "v1", "v2", "v4"]


def test_a_throttled_replay_writes_everything(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    replay(spark, options(cluster, topic, tmp_path, table=table, records_per_second=1000))
    assert len(values(spark, cluster, topic)) == 8


def test_decoded_values_are_made_into_text_again(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    table = TableOptions(location=str(tmp_path / "decoded"))
    decoded = rows(spark, 1).withColumn("value", expr("named_struct('id', 7)"))
    BatchWriter(open_table(spark, table), query="q")(decoded, 0)
    topic = cluster.topic()
    with pytest.raises(PipelineError, match=r"value: value is struct<id:int>, .* such as to_json\(value\)"):
        replay(spark, options(cluster, topic, tmp_path, table=table, dry_run=True))
    wanted = options(cluster, topic, tmp_path, table=table, value="to_json(value)", key="string(value.id)")
    replay(spark, wanted)
    assert values(spark, cluster, topic) == ['{"id":7}']


def test_a_progress_directory_belongs_to_one_replay(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    replay(spark, options(cluster, topic, tmp_path, table=table))
    with pytest.raises(OptionError, match=r"progress: .* belongs to a replay with other options"):
        replay(spark, options(cluster, topic, tmp_path, table=table, where="offset = 1"))


def test_a_table_that_has_been_compacted_meanwhile_is_noticed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions
) -> None:
    topic = cluster.topic()
    wanted = options(cluster, topic, tmp_path, table=table, chunk_records=4)

    def stop(step: ReplayStep) -> None:
        if step.rows_done:
            raise StopError

    with pytest.raises(StopError):
        replay(spark, wanted, at_step=stop)
    compact(spark, CompactOptions(table=table))
    with pytest.raises(PipelineError, match="has changed since the replay began"):
        replay(spark, wanted)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"where": "nosuch = 1"}, "where: .*nosuch"),
        ({"key": "nosuch"}, "key: .*nosuch"),
        ({"value": "offset"}, r"value: offset is bigint"),
    ],
)
def test_a_condition_that_does_not_fit_is_named(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, table: TableOptions, more: Any, message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        replay(spark, options(cluster, "any", tmp_path, table=table, dry_run=True, **more))


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({}, "table"),
        ({"table": TableOptions(location="x"), "topic_options": {}}, "table"),
        ({"table": TableOptions(location="x"), "progress": ""}, "progress"),
        ({"table": TableOptions(location="x"), "chunk_records": 0}, "chunk_records"),
        ({"table": TableOptions(location="x"), "records_per_second": 0}, "records_per_second"),
        ({"table": TableOptions(location="x"), "bytes_per_second": -1.0}, "bytes_per_second"),
        ({"table": TableOptions(location="x"), "from_ms": 2, "to_ms": 2}, "to_ms"),
    ],
)
def test_options_that_make_no_sense_are_named(given: Any, option: str) -> None:
    complete: dict[str, Any] = {"sink_options": {}, "progress": "p", **given}
    with pytest.raises(OptionError) as caught:
        ReplayOptions(**complete)
    assert caught.value.option == option
