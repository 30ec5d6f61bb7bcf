"""A real filesystem without space for one partition, and then with space again, without a restart.

The space is the limit that the system sets for files of the broker's process (RLIMIT_FSIZE), so the test
needs neither rights nor a disk of its own.
"""

import resource

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.confluent_polling import poll_values, share_consumer
from tests.clients.polling import SECONDS_MAX

pytestmark = pytest.mark.barnabas

ROOM_BYTES = 200_000
VALUE_BYTES = 10_000


def give_room(broker: BrokerProcess, size_bytes: int) -> None:
    """The maximum size of the broker's files."""
    _, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def produce(address: str, topic: str, value: str) -> KafkaError | None:
    """Produce one record without retries; its error."""
    outcomes: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 0,
            "retries": 0,
            "log_level": 0,
        }
    )
    producer.produce(topic, value, on_delivery=note)
    assert producer.flush(SECONDS_MAX) == 0
    return outcomes[0]


def test_a_partition_without_space_fails_alone_and_accepts_records_again(own_broker: BrokerProcess) -> None:
    cluster = Cluster(own_broker.address)
    large, small, group = cluster.topic(), cluster.topic(), cluster.group()
    value = "x" * VALUE_BYTES
    written = 0
    give_room(own_broker, ROOM_BYTES)
    while (error := produce(own_broker.address, large, value)) is None:
        written += 1
        assert written < ROOM_BYTES // VALUE_BYTES
    assert error.code() == KafkaError.KAFKA_STORAGE_ERROR
    assert produce(own_broker.address, small, value) is None
    give_room(own_broker, resource.RLIM_INFINITY)
    cluster.produce(large, [value], retries=100, retry_backoff_ms=100)
    consumer = share_consumer(own_broker.address, group, large, mode="implicit")
    assert poll_values(consumer, written + 1) == [value] * (written + 1)
    consumer.close()
    assert own_broker.stop() == 0
    own_broker.start()
