"""Apache Kafka in place of the test kit's broker, for the comparison of `benchmarks.testing`.

It has the methods of the kit's broker that the tests of `examples/orders` use. The clock cannot be advanced,
so `advance` waits until a lock has expired.
"""

import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.clients.cluster import Cluster

from barnabas.testing.records import Expected, TopicRecord, difference
from benchmarks.brokers.apache_kafka import ApacheKafka

LOCK_MS: Final = 1_000
"""Kafka's default for the shortest locks of a group is 15 s; few tests would wait for that."""

_LOCK_SETTINGS: Final = {
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
}
_WAIT_SECONDS: Final = 60.0
_EXPIRY_SECONDS: Final = 0.2
"""The time that a broker may need to notice that a lock has expired."""


class RealClock:
    """The clock of a broker that has no other."""

    def advance(self, seconds: float) -> None:
        """Wait until the locks of this moment have expired."""
        time.sleep(min(seconds, LOCK_MS / 1000 + _EXPIRY_SECONDS))


class NoFaults:
    """A broker that causes no faults."""

    def clear(self) -> None:
        """There are none."""


class KafkaBroker:
    """A running Apache Kafka with the kit's operations."""

    def __init__(self, address: str) -> None:
        self.bootstrap_servers = address
        self.clock = RealClock()
        self.faults = NoFaults()
        self._cluster = Cluster(address)

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        """As the kit's."""
        self._cluster.topic(partitions, name=name, **(settings or {}))

    def configure_group(self, group: str, settings: Mapping[str, str]) -> None:
        """As the kit's."""
        self._cluster.set_group(group, dict(settings))

    def assert_records(self, topic: str, expected: Sequence[Expected], *, in_any_order: bool = False) -> None:
        """Read the topic from its beginning until it has the expected records."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "reader"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[TopicRecord] = []
        deadline = time.monotonic() + _WAIT_SECONDS
        while (difference(found, expected, in_any_order=in_any_order)) and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                found.append(TopicRecord(topic, 0, len(found), 0, message.key(), message.value(), ()))
        consumer.close()
        assert not difference(found, expected, in_any_order=in_any_order)


@pytest.fixture(scope="session")
def share_broker() -> Generator[KafkaBroker]:
    """Takes the place of the kit's fixture."""
    with tempfile.TemporaryDirectory() as directory:
        kafka = ApacheKafka(Path(directory), _LOCK_SETTINGS)
        kafka.prepare()
        kafka.start()
        try:
            yield KafkaBroker(kafka.address)
        finally:
            kafka.stop()
