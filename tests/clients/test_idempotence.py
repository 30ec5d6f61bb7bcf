"""Idempotent producers over SIGKILL: a batch that is repeated because its confirmation was lost exists once.

librdkafka keeps five requests in flight and repeats each until it is confirmed. So at every kill there are
some that the broker has written without confirming them.
"""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.clients.broker_process import BrokerProcess, started
from tests.clients.cluster import Cluster
from tests.clients.confluent_polling import text
from tests.clients.polling import SECONDS_MAX, eventually

pytestmark = pytest.mark.barnabas

KILLS = 4
SENT_BETWEEN_KILLS = 2000
UNCONFIRMED_AT_A_KILL = 500


def test_each_record_exists_once_and_in_order(barnabas_command: Path, tmp_path: Path) -> None:
    with started(BrokerProcess(barnabas_command, tmp_path / "data")) as broker:
        topic = Cluster(broker.address).topic()
        sent = send_through_kills(broker, topic)
        assert read(broker.address, topic, len(sent)) == sent


def send_through_kills(broker: BrokerProcess, topic: str) -> list[str]:
    """Produce while the broker is killed and restarted; the values in their order."""
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "batch.num.messages": 10,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    sent: list[str] = []
    for _ in range(KILLS):
        for number in range(len(sent), len(sent) + SENT_BETWEEN_KILLS):
            sent.append(f"value-{number}")
            producer.produce(topic, sent[-1])
            producer.poll(0)
        eventually(lambda: producer.flush(0.001) < UNCONFIRMED_AT_A_KILL, awaited="the producer gets on")
        broker.kill()
        broker.start()
    assert producer.flush(SECONDS_MAX) == 0
    return sent


def read(address: str, topic: str, count: int) -> list[str]:
    """All values, also those behind the last expected one."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []

    def at_the_end() -> bool:
        messages = consumer.consume(1000, 0.2)
        values.extend(text(message) for message in messages if message.error() is None)
        return len(values) >= count and any(message.error() is not None for message in messages)

    eventually(at_the_end, awaited="all sent records are read")
    consumer.close()
    return values
