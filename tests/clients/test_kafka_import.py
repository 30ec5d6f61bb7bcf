"""barnabas serves the data of Apache Kafka: after `barnabas import`, and in place.

A Kafka of the same version is started, filled, half read by a share group, and stopped. Every test here
starts with its directory.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest
from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, ShareConsumer, TopicPartition

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.confluent_polling import text
from tests.clients.polling import SECONDS_MAX, eventually

pytestmark = [pytest.mark.barnabas, pytest.mark.clients]

PARTITIONS = 3
RECORDS = 300
ACCEPTED = 120
ORDINARY_GROUP = "ordinary"


class KafkaData(NamedTuple):
    """A stopped Kafka's directory, and its content."""

    directory: Path
    topic: str
    topic_id: UUID
    group: str
    values: list[str]
    accepted: set[str]


@pytest.fixture(scope="module")
def kafka_data(tmp_path_factory: pytest.TempPathFactory) -> KafkaData:
    kafka = ApacheKafka(tmp_path_factory.mktemp("kafka") / "kafka", jvm_options=SHORT_LIVED_JVM)
    kafka.start()
    try:
        cluster = Cluster(kafka.address)
        topic = cluster.topic(PARTITIONS, retention_ms="123456789")
        group = cluster.group()
        values = [f"value-{number}" for number in range(RECORDS)]
        cluster.produce(topic, values, enable_idempotence=True)
        accepted = accept_some(kafka.address, group, topic, ACCEPTED)
        commit_some(kafka.address, topic)
        data = KafkaData(kafka.directory / "data", topic, cluster.topic_id(topic), group, values, accepted)
    finally:
        kafka.stop()
    return data


def share_consumer(address: str, group: str, topic: str) -> ShareConsumer:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 20,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    return consumer


def accept_some(address: str, group: str, topic: str, count: int) -> set[str]:
    """Accept at least this number of records, and release the others of the same polls; the accepted
    values.
    """
    consumer, accepted = share_consumer(address, group, topic), set[str]()

    def poll() -> bool:
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            if len(accepted) < count:
                consumer.acknowledge(message)
                accepted.add(text(message))
        consumer.commit_sync(SECONDS_MAX)
        return len(accepted) >= count

    eventually(poll, awaited=f"{count} records are accepted")
    consumer.close()
    return accepted


def commit_some(address: str, topic: str) -> None:
    """Commit an offset by a consumer, one within a transaction, and one in a transaction that is aborted."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": ORDINARY_GROUP, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 11)], asynchronous=False)
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    for partition, end in ((1, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        offsets = [TopicPartition(topic, partition, 22)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS_MAX)
        end(SECONDS_MAX)
    consumer.close()


def committed(address: str, topic: str) -> list[int]:
    """The ordinary group's committed offset of each partition; -1001 means none."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": ORDINARY_GROUP, "log_level": 0})
    found = consumer.committed([TopicPartition(topic, one) for one in range(PARTITIONS)], timeout=SECONDS_MAX)
    consumer.close()
    return [one.offset for one in found]


def take_all(address: str, group: str, topic: str, expected: int) -> list[str]:
    """Accept all records until this number has arrived; their values in the order of arrival."""
    consumer, taken = share_consumer(address, group, topic), list[str]()

    def poll() -> bool:
        messages = consumer.poll(0.5)
        for message in messages:
            assert message.error() is None, message.error()
            consumer.acknowledge(message)
            taken.append(text(message))
        consumer.commit_sync(SECONDS_MAX)
        return len(taken) >= expected and not messages

    eventually(poll, awaited=f"{expected} records come")
    consumer.close()
    return taken


def read_all(address: str, topic: str) -> list[str]:
    """Every value in the topic, by a plain consumer."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "plain", "log_level": 0})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: list[str] = []

    def poll() -> bool:
        values.extend(text(message) for message in consumer.consume(500, 0.2))
        return len(values) >= RECORDS

    eventually(poll, awaited="all records are read")
    consumer.close()
    return values


def barnabas(command: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)


def contents(directory: Path) -> dict[str, str]:
    """A digest of each file."""
    files: Iterable[Path] = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_served(broker: BrokerProcess, data: KafkaData) -> None:
    """All records are read, and the share group continues at its offset."""
    cluster = Cluster(broker.address)
    assert cluster.topic_id(data.topic) == data.topic_id
    assert sorted(read_all(broker.address, data.topic)) == sorted(data.values)
    assert committed(broker.address, data.topic) == [11, 22, OFFSET_INVALID]
    cluster.produce(data.topic, ["new"], enable_idempotence=True)
    left = {*data.values, "new"} - data.accepted
    assert sorted(take_all(broker.address, data.group, data.topic, len(left))) == sorted(left)


@pytest.mark.parametrize("options", [(), ("--link",)])
def test_an_imported_directory_is_served_and_the_source_is_unchanged(
    kafka_data: KafkaData, barnabas_command: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    before = contents(kafka_data.directory)
    target = tmp_path / "data"
    done = barnabas(
        barnabas_command, "import", "--from", kafka_data.directory, "--data-dir", target, *options
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"1 topic, {PARTITIONS} partitions, 2 groups" in done.stdout
    broker = BrokerProcess(barnabas_command, target)
    broker.start()
    try:
        check_served(broker, kafka_data)
    finally:
        assert broker.stop() == 0
    assert contents(kafka_data.directory) == before


def test_a_kafka_directory_is_served_in_place_only_when_that_is_allowed(
    kafka_data: KafkaData, barnabas_command: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(kafka_data.directory, directory)
    refused = barnabas(barnabas_command, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "belongs to Apache Kafka" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert contents(directory) == contents(kafka_data.directory)
    broker = BrokerProcess(barnabas_command, directory, options=("--allow-kafka-directory",))
    broker.start()
    try:
        check_served(broker, kafka_data)
    finally:
        broker.kill()
    again = BrokerProcess(barnabas_command, directory)
    again.start()
    assert again.stop() == 0


def test_a_directory_that_kafka_is_running_on_is_refused(barnabas_command: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path / "kafka", jvm_options=SHORT_LIVED_JVM)
    kafka.start()
    try:
        source = kafka.directory / "data"
        done = barnabas(barnabas_command, "import", "--from", source, "--data-dir", tmp_path / "data")
        assert done.returncode == 1
        assert f"is used by a running broker, process {kafka.pid}" in done.stderr
    finally:
        kafka.stop()
