"""Records written by librdkafka, read from the broker's files and by librdkafka's own consumer."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition

from barnabas.pipeline.decoding import _native
from tests.clients.cluster import Cluster
from tests.clients.polling import SECONDS_MAX
from tests.pipeline.decoding.decoders import rows

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 50
COLUMNS = ("offset", "timestamp", "timestampType", "key", "value", "headers")


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_the_files_hold_the_records_that_confluents_consumer_reads(
    broker: LocalBroker, cluster: Cluster, timestamp_type: str
) -> None:
    topic = cluster.topic(message_timestamp_type=timestamp_type)
    for codec in CODECS:
        produce(broker.address, topic, codec)
    (segment,) = broker.directory.rglob(f"{topic}-0/*.log")
    count = RECORDS_PER_CODEC * len(CODECS)
    assert rows(_native.RecordDecoder, segment.read_bytes(), *COLUMNS) == consume(
        broker.address, topic, count
    )


def produce(address: str, topic: str, codec: str) -> None:
    headers: list[tuple[str, str | bytes | None]] = [("codec", codec), ("n\u00e9", None), ("", b"")]
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 50, "log_level": 0}
    )
    for number in range(RECORDS_PER_CODEC):
        producer.produce(
            topic,
            key=None if number % 3 else b"key-%d" % number,
            value=None if number % 7 == 6 else bytes([number]) * 3 * number,
            headers=headers[: number % 4],
        )
    assert producer.flush(SECONDS_MAX) == 0


def consume(address: str, topic: str, count: int) -> list[tuple[Any, ...]]:
    """The first `count` records, in the columns' words."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        message: Any = consumer.poll(30)
        assert message is not None, "the records did not come in time"
        assert message.error() is None
        timestamp_type, timestamp_ms = message.timestamp()
        headers = [{"key": name, "value": value} for name, value in message.headers() or ()]
        is_append_time = int(timestamp_type == TIMESTAMP_LOG_APPEND_TIME)
        found.append(
            (message.offset(), 1000 * timestamp_ms, is_append_time, message.key(), message.value(), headers)
        )
    consumer.close()
    return found
