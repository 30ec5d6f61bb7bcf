"""Records of given offsets as Arrow batches, as a task reads them, against both brokers and without Spark."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import Producer, TopicPartition

from barnabas.client.cluster.topics import Isolation
from barnabas.client.consume.topic_reader import ReadSettings
from barnabas.client.errors import RecordsGoneError, TopicGoneError
from barnabas.client.network.address import parse_bootstrap
from barnabas.pipeline import reading
from barnabas.pipeline.reading import Gone, PartitionRanges, read_records
from barnabas.pipeline.servers import Servers
from barnabas.protocol.identity import TopicIdPartition
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.polling import SECONDS_MAX


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic of one partition with thirty records, ten to a batch."""
    name = cluster.topic()
    for start in range(0, 30, 10):
        cluster.produce(name, numbered(30)[start : start + 10])
    return name


def wanted(cluster: Cluster, topic: str, *ranges: tuple[int, int, int]) -> list[PartitionRanges]:
    return [PartitionRanges(topic, TopicIdPartition(cluster.topic_id(topic), 0), ranges)]


def read(
    cluster: Cluster, ranges: Sequence[PartitionRanges], columns: Sequence[str], **options: Any
) -> list[tuple[Any, ...]]:
    """The rows as tuples."""
    servers = Servers(tuple(parse_bootstrap(cluster.bootstrap)))
    batches = list(read_records(servers, ranges, columns, **options))
    return [tuple(row[column] for column in columns) for batch in batches for row in batch.to_pylist()]


def test_ranges_come_with_their_delivery_counts_and_nothing_else(cluster: Cluster, topic: str) -> None:
    ranges = wanted(cluster, topic, (3, 4, 1), (12, 12, 5), (29, 29, 2))
    rows = read(cluster, ranges, ["offset", "deliveryCount", "topic", "partition", "value"])
    assert rows == [
        (offset, count, topic, 0, numbered(30)[offset].encode())
        for offset, count in ((3, 1), (4, 1), (12, 5), (29, 2))
    ]


def test_columns_that_are_the_same_in_all_rows_need_no_others(cluster: Cluster, topic: str) -> None:
    assert read(cluster, wanted(cluster, topic, (0, 29, 0)), ["partition"]) == [(0,)] * 30


def test_deleted_records_are_an_error_or_are_reported(cluster: Cluster, topic: str) -> None:
    ranges = wanted(cluster, topic, (0, 29, 0))
    for deleted in cluster.admin.delete_records([TopicPartition(topic, 0, 12)]).values():
        deleted.result()
    with pytest.raises(RecordsGoneError, match="has no record at offset 0: it holds 12 to 30"):
        read(cluster, ranges, ["offset"])
    told: list[Gone] = []
    assert read(cluster, ranges, ["offset"], on_gone=told.append) == [(offset,) for offset in range(12, 30)]
    assert [type(one) for one in told] == [RecordsGoneError]


def test_a_deleted_topic_is_an_error_or_is_reported(cluster: Cluster, topic: str) -> None:
    ranges = wanted(cluster, topic, (0, 29, 0))
    for deleted in cluster.admin.delete_topics([topic]).values():
        deleted.result()
    with pytest.raises(TopicGoneError):
        read(cluster, ranges, ["offset"])


def test_records_of_aborted_transactions_are_left_out(cluster: Cluster) -> None:
    topic = cluster.topic()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("reader")})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, str(number))
        producer.flush(SECONDS_MAX)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    ranges = wanted(cluster, topic, (0, 6, 0))
    committed = ReadSettings(isolation=Isolation.READ_COMMITTED)
    assert read(cluster, ranges, ["value", "offset"], settings=committed) == [(b"0", 0), (b"2", 4)]
    assert [value for (value,) in read(cluster, ranges, ["value"])] == [b"0", b"1", b"2", b"3"]


def test_a_broker_that_restarts_between_two_reads_is_found_again(
    start_broker: Callable[[str], LocalBroker],
) -> None:
    broker = start_broker("barnabas")
    cluster = Cluster(broker.address)
    topic = cluster.topic()
    cluster.produce(topic, numbered(3))
    ranges = wanted(cluster, topic, (0, 2, 0))
    before = read(cluster, ranges, ["offset"])
    broker.kill()
    broker.start()
    assert Cluster(broker.address).bootstrap == cluster.bootstrap
    assert read(cluster, ranges, ["offset"]) == before == [(0,), (1,), (2,)]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_read_that_is_broken_off_leaves_nothing_behind(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ANSWER_BYTES", 1)
    servers = Servers(tuple(parse_bootstrap(cluster.bootstrap)))
    ranges = wanted(cluster, topic, *((offset, offset, 0) for offset in range(0, 30, 10)))
    batches = read_records(servers, ranges, ["offset"], settings=ReadSettings(fetch_bytes=1))
    assert next(batches).num_rows > 0
    batches.close()
    del batches
    gc.collect()
