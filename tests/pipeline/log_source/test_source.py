"""The format in Spark, on directories that brokers write: Barnabas's and Apache Kafka's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Consumer, Message, Producer, ShareConsumer, TopicPartition
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody names it

from barnabas.pipeline.log_source.control_batches import control_records
from barnabas.pipeline.log_source.directories import find_partitions
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
from barnabas.protocol.control_record import decode_control_record
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.polling import SECONDS_MAX, eventually
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of

TRANSACTION_MS_MAX = 900_000
"""A transaction stays open for as long as the tests may take: Kafka's greatest timeout."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def data_directory(broker: LocalBroker) -> str:
    return str(broker.directory / "data")


def read(spark: SparkSession, path: str, **options: object) -> DataFrame:
    reader = spark.read.format("kafka-log")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(path)


Row = tuple[int, int, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]
"""Partition, offset, key, value, time in ms, headers."""


def consumed(cluster: Cluster, topic: str, partition_count: int, isolation: str) -> list[Row]:
    """All that a consumer sees of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": unique("reader"),
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partition_count)])
    rows: list[Row] = []
    ended: set[int | None] = set()

    def all_ended() -> bool:
        for message in consumer.consume(1000, 0.5):
            if message.error() is not None:
                ended.add(message.partition())
            else:
                rows.append(row_of_message(message))
        return len(ended) == partition_count

    eventually(all_ended, awaited="the consumer reaches the end of each partition")
    consumer.close()
    return sorted(rows, key=lambda row: row[:2])


def row_of_message(message: Message) -> Row:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    key: Any = message.key()
    value: Any = message.value()
    return partition, offset, key, value, message.timestamp()[1], tuple(map(tuple, headers))


def collected(frame: DataFrame) -> list[Row]:
    """The same of a frame."""
    taken = frame.withColumn("ms", F.unix_millis("timestamp")).orderBy("partition", "offset").collect()
    return [
        (
            row["partition"],
            row["offset"],
            None if row["key"] is None else bytes(row["key"]),
            None if row["value"] is None else bytes(row["value"]),
            row["ms"],
            tuple(
                (header["key"], None if header["value"] is None else bytes(header["value"]))
                for header in row["headers"] or ()
            ),
        )
        for row in taken
    ]


@pytest.fixture(scope="module")
def mixed_topic(cluster: Cluster) -> str:
    """Two partitions of several segments, all codecs, headers, keys and values that are null or empty."""
    topic = cluster.topic(2, segment_bytes="1048576", max_message_bytes="1048000")
    for codec in CODECS:
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "compression.type": codec, "batch.num.messages": 40}
        )
        for number in range(600):
            producer.produce(
                topic,
                b"%s-%d" % (codec.encode(), number) + bytes(number % 7 * 300),
                key=None if number % 3 == 0 else b"" if number % 3 == 1 else b"key-%d" % number,
                partition=number % 2,
                headers=[("name", b"%d" % number), ("none", None)] if number % 4 == 0 else None,
            )
        producer.produce(topic, None, key=b"tombstone", partition=0)
        assert producer.flush(SECONDS_MAX) == 0
    return topic


def test_the_records_are_those_that_a_consumer_sees(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, mixed_topic: str
) -> None:
    frame = read(spark, data_directory(broker), topics=mixed_topic, sliceBytes=200_000)
    assert collected(frame) == consumed(cluster, mixed_topic, 2, "read_uncommitted")


def test_spark_connectors_columns_are_there(
    spark: SparkSession, broker: LocalBroker, mixed_topic: str
) -> None:
    frame = read(spark, data_directory(broker), topics=mixed_topic)
    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    assert {row["topic"] for row in frame.select("topic").distinct().collect()} == {mixed_topic}


def test_the_brokers_time_has_its_type(spark: SparkSession, broker: LocalBroker, cluster: Cluster) -> None:
    topic = cluster.topic(message_timestamp_type="LogAppendTime")
    cluster.produce(topic, numbered(10))
    frame = read(spark, data_directory(broker), topics=topic, columns="timestampType,offset,timestamp")
    assert {row["timestampType"] for row in frame.collect()} == {1}


def test_share_state_in_the_log_is_no_records(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic, group = cluster.topic(), cluster.group()
    offsets = cluster.produce(topic, numbered(100))
    consumer: Any = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])
    taken: list[bytes] = []

    def all_taken() -> bool:
        taken.extend(message.value() for message in consumer.poll(0.5))
        return len(taken) >= len(offsets)

    eventually(all_taken, awaited="the share consumer has all records")
    consumer.commit_sync(SECONDS_MAX)
    consumer.close()
    cluster.produce(topic, numbered(10))
    rows = collected(read(spark, data_directory(broker), topics=topic))
    assert rows == consumed(cluster, topic, 1, "read_uncommitted")
    (folder,) = find_partitions([data_directory(broker)], [topic])
    records = [
        record for piece in slice_partition(folder, LogBounds(), 2**40) for record in control_records(piece)
    ]
    assert bool(records) == (broker.name == "barnabas")
    assert {getattr(decode_control_record(one.key, one.value), "group_id", None) for one in records} <= {
        group
    }


def transactional(cluster: Cluster, name: str) -> Producer:
    settings: dict[str, str | int] = {
        "bootstrap.servers": cluster.bootstrap,
        "transactional.id": unique(name),
        "transaction.timeout.ms": TRANSACTION_MS_MAX,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.init_transactions(30)
    return producer


@pytest.fixture(scope="module")
def transactional_topic(broker: LocalBroker, cluster: Cluster) -> Iterator[str]:
    """Committed and aborted transactions of two producers that overlap, one still open, records behind it."""
    topic = cluster.topic(segment_bytes="1048576")
    one, other = transactional(cluster, "one"), transactional(cluster, "other")
    for round_number in range(6):
        for producer in (one, other):
            producer.begin_transaction()
        for number in range(60):
            for name, producer in (("one", one), ("other", other)):
                producer.produce(topic, f"{name}-{round_number}-{number}".encode() + bytes(3000))
        for producer in (one, other):
            assert producer.flush(SECONDS_MAX) == 0
        if round_number % 2:
            one.abort_transaction(30)
        else:
            one.commit_transaction(30)
        if round_number % 3:
            other.commit_transaction(30)
        else:
            other.abort_transaction(30)
    cluster.produce(topic, numbered(20, "plain"))
    one.begin_transaction()
    one.produce(topic, b"open")
    assert one.flush(SECONDS_MAX) == 0
    cluster.produce(topic, numbered(20, "behind"))
    yield topic
    one.abort_transaction(30)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_isolation_is_that_of_a_consumer(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, transactional_topic: str, isolation: str
) -> None:
    path = data_directory(broker)
    frame = read(spark, path, topics=transactional_topic, isolation=isolation, sliceBytes=50_000)
    assert collected(frame) == consumed(cluster, transactional_topic, 1, isolation)


def test_isolation_is_the_same_without_transaction_indexes(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster, transactional_topic: str, tmp_path: Path
) -> None:
    copy = WrittenDirectory(tmp_path).path / f"{transactional_topic}-0"
    copy.mkdir()
    for path in (broker.directory / "data" / copy.name).glob("*.log"):
        (copy / path.name).write_bytes(path.read_bytes())
    frame = read(spark, str(tmp_path), isolation="read_committed")
    assert collected(frame) == consumed(cluster, transactional_topic, 1, "read_committed")


def test_a_log_is_read_while_it_is_written(
    spark: SparkSession, broker: LocalBroker, cluster: Cluster
) -> None:
    topic = cluster.topic(segment_bytes="1048576")
    written = cluster.produce(topic, [bytes(2000)] * 100)
    rounds = 10

    def write() -> None:
        for _ in range(rounds):
            written.extend(cluster.produce(topic, [bytes(2000)] * 200, linger_ms=0))

    def read_once() -> None:
        least = len(written)
        frame = read(spark, data_directory(broker), topics=topic, columns="offset", sliceBytes=1_000_000)
        offsets = sorted(row["offset"] for row in frame.collect())
        assert offsets == list(range(len(offsets)))
        assert least <= len(offsets)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        read_once()
    read_once()
    assert len(written) == 100 + 200 * rounds


@pytest.fixture(scope="module")
def filtered_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topics a and b of two partitions; times go up by segments, and back within them."""
    written = WrittenDirectory(tmp_path_factory.mktemp("filtered"))
    for topic in ("a", "b"):
        for partition in (0, 1):
            for number in range(3):
                batches = [
                    batch_of(100 * number + 10 * part, 10, time_ms=1000 * number + 500 - 30 * part)
                    for part in range(10)
                ]
                written.segment(batches, topic=topic, partition=partition)
    return written.path


def at(ms: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


FILTERS: Mapping[str, Callable[[], Column]] = {
    "topic in": lambda: F.col("topic").isin("b", "c"),
    "topic like": lambda: F.col("topic").startswith("b"),
    "partition in": lambda: F.col("partition").isin(1, 7),
    "offset =": lambda: F.col("offset") == 155,
    "offset between": lambda: F.col("offset").between(95, 211),
    "offset in": lambda: F.col("offset").isin(3, 250, 1000),
    "timestamp >=": lambda: F.col("timestamp") >= F.lit(at(2300)),
    "timestamp >": lambda: F.col("timestamp") > F.lit(at(2300.5)),
    "timestamp <": lambda: F.col("timestamp") < F.lit(at(1300)),
    "timestamp =": lambda: F.col("timestamp") == F.lit(at(1295)),
    "timestamp = between ms": lambda: F.col("timestamp") == F.lit(at(1295.5)),
    "or": lambda: (F.col("offset") < 5) | (F.col("partition") == 1),
    "not null": lambda: F.col("key").isNotNull() & F.col("offset").isNotNull(),
    "all": lambda: (F.col("topic") == "a") & (F.col("partition") == 1) & (F.col("offset") > 250),
    "none": lambda: (F.col("offset") > 250) & (F.col("offset") < 250),
}


def test_filters_give_the_same_with_pushdown_on_and_off(
    spark: SparkSession, filtered_directory: Path
) -> None:
    place = F.xxhash64("topic", "partition", "offset")
    filtered = [
        read(spark, str(filtered_directory))
        .where(condition())
        .select(F.lit(name).alias("name"), place.alias("place"))
        for name, condition in FILTERS.items()
    ]
    together = reduce(DataFrame.union, filtered).groupBy("name").agg(F.count("*"), F.bit_xor("place"))
    found = {row[0]: (row[1], row[2]) for row in together.collect()}
    whole = read(spark, str(filtered_directory), pushdown="false")
    counts = [F.count_if(condition()) for condition in FILTERS.values()]
    places = [F.bit_xor(F.when(condition(), place)) for condition in FILTERS.values()]
    row = whole.agg(*counts, *places).collect()[0]
    expected = zip(FILTERS, row[: len(FILTERS)], row[len(FILTERS) :], strict=True)
    assert found == {name: (count, xor) for name, count, xor in expected if count}
    assert set(found) == set(FILTERS) - {"timestamp = between ms", "none"}


def test_pushed_down_filters_are_not_applied_again(spark: SparkSession, filtered_directory: Path) -> None:
    frame = read(spark, str(filtered_directory)).where("topic = 'a' and offset >= 100")
    plan: str = frame._jdf.queryExecution().executedPlan().toString()  # pyright: ignore
    assert "Filter " not in plan


def test_columns_are_picked_and_ordered(spark: SparkSession, filtered_directory: Path) -> None:
    frame = read(spark, str(filtered_directory), columns="offset,TOPIC")
    assert frame.columns == ["offset", "topic"]
    assert frame.where("topic = 'a'").count() == 600


def test_several_directories_are_given_to_load(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one", "two"):
        WrittenDirectory(tmp_path / name).segment([batch_of(0, 10)], topic=name)
    frame = spark.read.format("kafka-log").load([str(tmp_path / "one"), str(tmp_path / "two")])
    assert {(row["topic"], row["count"]) for row in frame.groupBy("topic").count().collect()} == {
        ("one", 10),
        ("two", 10),
    }


def test_an_empty_read_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert read(spark, str(WrittenDirectory(tmp_path).path)).count() == 0


BAD_READS: list[tuple[dict[str, str], str, str]] = [
    ({}, "/nowhere", "/nowhere: there is no such directory"),
    ({"topics": "absent"}, "", "topics: there is no topic 'absent' in"),
    ({"slicebytes": "few"}, "", "sliceBytes: 'few' is not a whole number"),
    ({"sliceSize": "1"}, "", "slicesize: there is no such option; did you mean sliceBytes?"),
]


@pytest.mark.parametrize(("options", "place", "message"), BAD_READS, ids=lambda one: str(one)[:40])
def test_a_wrong_read_fails_with_one_clear_error(
    spark: SparkSession, filtered_directory: Path, options: dict[str, str], place: str, message: str
) -> None:
    with pytest.raises(AnalysisException) as error:
        read(spark, f"{filtered_directory}{place}", **options).count()
    assert message in str(error.value)


def test_a_truncated_segment_fails_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    written = WrittenDirectory(tmp_path)
    path = written.segment([batch_of(0, 10), batch_of(10, 10)])
    written.segment([batch_of(20, 10)])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PySparkException, match=f"{path}: the batch at byte"):
        read(spark, str(tmp_path)).count()


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, filtered_directory: Path) -> None:
    with pytest.raises(AnalysisException, match="kafka-log has its own schema"):
        spark.read.format("kafka-log").schema("a int").load(str(filtered_directory)).count()
