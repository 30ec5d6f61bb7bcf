"""Records of every producer in every compression codec, read by share consumers and by plain consumers."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.confluent_polling import poll_values as poll_share_values
from tests.clients.confluent_polling import share_consumer
from tests.clients.java_polling import poll_values as poll_java_values
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe
from tests.clients.untyped_clients import aiokafka, kafka_python

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUES = [f"{value} {'x' * 200}" for value in numbered(50)]

Produce = Callable[[ShareProbe, Cluster, str, str], None]


def with_java(probe: ShareProbe, _cluster: Cluster, topic: str, codec: str) -> None:
    assert probe.produce(topic, VALUES, compression_type=codec) == list(range(len(VALUES)))


def with_confluent(_probe: ShareProbe, cluster: Cluster, topic: str, codec: str) -> None:
    assert cluster.produce(topic, VALUES, compression_type=codec) == list(range(len(VALUES)))


def with_confluent_idempotence(_probe: ShareProbe, cluster: Cluster, topic: str, codec: str) -> None:
    offsets = cluster.produce(topic, VALUES, compression_type=codec, enable_idempotence=True)
    assert offsets == list(range(len(VALUES)))


def with_kafka_python(_probe: ShareProbe, cluster: Cluster, topic: str, codec: str) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=50,
    )
    sent = [producer.send(topic, value.encode()) for value in VALUES]
    assert [future.get().offset for future in sent] == list(range(len(VALUES)))
    producer.close()


def with_aiokafka(_probe: ShareProbe, cluster: Cluster, topic: str, codec: str) -> None:
    asyncio.run(_produce_with_aiokafka(cluster, topic, codec, idempotent=False))


def with_aiokafka_idempotence(_probe: ShareProbe, cluster: Cluster, topic: str, codec: str) -> None:
    asyncio.run(_produce_with_aiokafka(cluster, topic, codec, idempotent=True))


async def _produce_with_aiokafka(cluster: Cluster, topic: str, codec: str, *, idempotent: bool) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        linger_ms=50,
    )
    async with producer:
        sent = [await producer.send(topic, value.encode()) for value in VALUES]
        metadata = await asyncio.gather(*sent)
    assert [record.offset for record in metadata] == list(range(len(VALUES)))


PRODUCERS: Sequence[Produce] = (
    with_java,
    with_confluent,
    with_confluent_idempotence,
    with_kafka_python,
    with_aiokafka,
    with_aiokafka_idempotence,
)


def read_with_confluent(bootstrap: str, topic: str, count: int) -> list[str]:
    """Read a topic's only partition from its beginning with a plain, groupless assignment."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": unique("unused"), "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[str] = []

    def read() -> bool:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None
            value = message.value()
            values.append("" if value is None else value.decode())
        return len(values) >= count

    eventually(read, awaited=f"{count} records are read")
    consumer.close()
    return values


def read_with_kafka_python(bootstrap: str, topic: str, count: int) -> list[str]:
    """The same with kafka-python (Fetch by topic name)."""
    consumer = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([kafka_python.TopicPartition(topic, 0)])
    values: list[str] = []

    def read() -> bool:
        for records in consumer.poll(200).values():
            values.extend(record.value.decode() for record in records)
        return len(values) >= count

    eventually(read, awaited=f"{count} records are read")
    consumer.close()
    return values


def read_with_aiokafka(bootstrap: str, topic: str, count: int) -> list[str]:
    """The same with aiokafka (Fetch 11 and below)."""

    async def read() -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        partition = aiokafka.TopicPartition(topic, 0)
        async with consumer:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value.decode() for _ in range(count)]

    return asyncio.run(read())


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("produce", PRODUCERS)
def test_share_consumers_read_every_producer_and_codec(
    cluster: Cluster, probe: ShareProbe, produce: Produce, codec: str
) -> None:
    topic, group = cluster.topic(), cluster.group()
    produce(probe, cluster, topic, codec)
    consumer = share_consumer(cluster.bootstrap, group, topic, mode="implicit")
    assert poll_share_values(consumer, len(VALUES)) == VALUES
    consumer.close()


def test_one_topic_in_all_codecs_is_read_alike_by_all_consumers(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    for codec in CODECS:
        cluster.produce(topic, numbered(20, codec), compression_type=codec)
    expected = [value for codec in CODECS for value in numbered(20, codec)]
    java = probe.consumer(unique("java"), group, [topic])
    assert poll_java_values(java, len(expected)) == expected
    java.commit_sync()
    java.close()
    for read in (read_with_confluent, read_with_kafka_python, read_with_aiokafka):
        assert read(cluster.bootstrap, topic, len(expected)) == expected


def test_plain_consumers_read_past_the_share_state_in_the_log(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    java = probe.consumer(unique("java"), group, [topic])
    for value in numbered(20):
        cluster.produce(topic, [value], linger_ms=0)
        assert poll_java_values(java, 1) == [value]
        assert [result.error for result in java.commit_sync()] == [None]
    java.close()
    for read in (read_with_confluent, read_with_kafka_python, read_with_aiokafka):
        assert read(cluster.bootstrap, topic, 20) == numbered(20)


def test_headers_and_keys_arrive_as_they_were_sent(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group()
    producer = kafka_python.KafkaProducer(bootstrap_servers=cluster.bootstrap)
    producer.send(topic, b"value", key=b"key", headers=[("source", b"test")]).get()
    producer.close()
    java = probe.consumer(unique("java"), group, [topic])

    def poll() -> list[tuple[object, ...]]:
        return [(record.key, record.value, record.headers) for record in java.poll()]

    assert eventually(poll, awaited="the record is delivered") == [("key", "value", {"source": "test"})]
    java.close()


def test_a_big_record_passes_whole(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    big = "b" * 990_000
    cluster.produce(topic, [big])
    consumer = share_consumer(cluster.bootstrap, group, topic, mode="implicit")
    assert poll_share_values(consumer, 1) == [big]
    consumer.close()


@pytest.mark.parametrize("client", [AdminClient, Producer, Consumer])
def test_all_topics_are_listed(cluster: Cluster, client: type[AdminClient | Producer | Consumer]) -> None:
    topic = cluster.topic()
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": unique("unused"),
    }
    listed = client(settings).list_topics(timeout=SECONDS_MAX)
    assert list(listed.topics[topic].partitions) == [0]
