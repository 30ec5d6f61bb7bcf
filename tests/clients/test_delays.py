"""Real share consumers in groups with delays and a time to live, and the page docs/delays.md."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from confluent_kafka import AcknowledgeType, Producer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll_some as poll_confluent
from tests.clients.confluent_polling import share_consumer
from tests.clients.java_build import PROJECT
from tests.clients.java_polling import accept, poll_some, wait_for_lag
from tests.clients.page_commands import run_commands
from tests.clients.polling import SECONDS_MAX
from tests.clients.share_probe import ShareProbe
from tests.clients.test_readme import blocks, output_of

pytestmark = pytest.mark.barnabas

HEADER = "deliver.after.ms"
DELAY_SECONDS = 1.0


def test_a_java_consumer_gets_records_when_they_are_due(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group(delivery_delay_ms=1_000)
    consumer = probe.consumer(unique("consumer"), group, [topic], share_acknowledgement_mode="explicit")
    with closing(consumer):
        began = time.monotonic()
        cluster.produce(topic, ["a", "b"])
        records = poll_some(consumer)
        assert time.monotonic() - began >= DELAY_SECONDS - 0.01
        assert all(record.value in ("a", "b") for record in records)
        accept(consumer, records)


def test_records_expire_in_a_group_of_java_consumers(cluster: Cluster, probe: ShareProbe) -> None:
    topic, group = cluster.topic(), cluster.group(record_ttl_ms=60_000)
    old_ms = round(time.time() * 1_000) - 61_000
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"old", timestamp=old_ms)
    producer.produce(topic, b"young")
    assert not producer.flush(SECONDS_MAX)
    consumer = probe.consumer(unique("consumer"), group, [topic], share_acknowledgement_mode="explicit")
    with closing(consumer):
        records = poll_some(consumer)
        assert [record.value for record in records] == ["young"]
        accept(consumer, records)
        wait_for_lag(probe, group, 0)


def test_a_delay_in_a_header_survives_a_kill_of_the_broker(own_broker: BrokerProcess) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), cluster.group(delay_header=HEADER)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    with closing(share_consumer(cluster.bootstrap, group, topic)) as consumer:
        producer.produce(topic, b"now")
        assert not producer.flush(SECONDS_MAX)
        (now,) = poll_confluent(consumer)
        assert now.value() == b"now"
        consumer.acknowledge(now, AcknowledgeType.ACCEPT)
        consumer.commit_sync(SECONDS_MAX)
        began = time.monotonic()
        producer.produce(topic, b"later", headers=[(HEADER, b"6000")])
        assert not producer.flush(SECONDS_MAX)
        own_broker.kill()
        own_broker.start()
        (later,) = poll_confluent(consumer)
        assert time.monotonic() - began >= 5.9
        assert (later.value(), later.delivery_count()) == (b"later", 1)
        consumer.acknowledge(later, AcknowledgeType.ACCEPT)
        consumer.commit_sync(SECONDS_MAX)


def test_the_program_of_the_page_gets_the_delayed_record_last(own_broker: BrokerProcess) -> None:
    page = PROJECT / "docs" / "delays.md"
    assert run_commands(page, own_broker) == 3
    (program,) = blocks(page, "python")
    assert output_of(program, own_broker) == ["now", "in two seconds"]
