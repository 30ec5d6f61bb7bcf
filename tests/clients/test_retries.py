"""Real share consumers in groups with `share.retry.backoff.ms`, and the program of docs/retries.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Producer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll_some as poll_confluent
from tests.clients.confluent_polling import share_consumer
from tests.clients.java_build import PROJECT
from tests.clients.java_polling import accept, poll_some, wait_for_lag
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe
from tests.clients.test_readme import blocks, printed, running

pytestmark = pytest.mark.barnabas

DELAY_SECONDS = 1.0


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes consumers after the test."""
    with ExitStack() as stack:
        yield stack


def test_a_record_that_a_java_consumer_releases_waits_and_others_do_not(
    cluster: Cluster, probe: ShareProbe, stack: ExitStack
) -> None:
    topic, group = cluster.topic(), cluster.group(retry_backoff_ms=1000, retry_backoff_jitter=0)
    cluster.produce(topic, ["again"])
    consumer = probe.consumer(unique("consumer"), group, [topic], share_acknowledgement_mode="explicit")
    stack.enter_context(closing(consumer))
    (again,) = poll_some(consumer)
    began = time.monotonic()
    consumer.acknowledge([again], "RELEASE")
    assert [result.error for result in consumer.commit_sync()] == [None]
    cluster.produce(topic, ["other"])
    deliveries: set[tuple[str | None, int]] = set()
    while len(deliveries) < 2:
        records = poll_some(consumer)
        came = time.monotonic()
        accept(consumer, records)
        deliveries.update((record.value, record.delivery_count) for record in records)
        if ("again", 2) in deliveries:
            assert came - began >= DELAY_SECONDS
    assert deliveries == {("again", 2), ("other", 1)}
    wait_for_lag(probe, group, 0)


def test_a_confluent_consumer_that_closes_gives_its_records_back_at_once(cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(retry_backoff_ms=30_000)
    cluster.produce(topic, ["a", "b"])
    with closing(share_consumer(cluster.bootstrap, group, topic)) as first:
        messages = poll_confluent(first)
        assert len(messages) == 2
    with closing(share_consumer(cluster.bootstrap, group, topic)) as second:
        again = poll_confluent(second)
        for message in again:
            second.acknowledge(message, AcknowledgeType.ACCEPT)
        second.commit_sync(SECONDS_MAX)
    assert {message.delivery_count() for message in again} == {2}


def test_a_due_time_survives_a_kill_of_the_broker(own_broker: BrokerProcess, stack: ExitStack) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), cluster.group(retry_backoff_ms=6_000, retry_backoff_jitter=0)
    cluster.produce(topic, ["a"])
    first = stack.enter_context(closing(share_consumer(cluster.bootstrap, group, topic)))
    (message,) = poll_confluent(first)
    began = time.monotonic()
    first.acknowledge(message, AcknowledgeType.RELEASE)
    assert list(first.commit_sync(SECONDS_MAX).values()) == [None]
    own_broker.kill()
    own_broker.start()
    (again,) = poll_confluent(first)
    assert time.monotonic() - began >= 6
    assert again.delivery_count() == 2
    first.acknowledge(again, AcknowledgeType.ACCEPT)
    assert list(first.commit_sync(SECONDS_MAX).values()) == [None]


def test_the_program_of_the_page_delays_each_record_once(own_broker: BrokerProcess, tmp_path: Path) -> None:
    cluster = Cluster(own_broker.address)
    cluster.set_group("call-partners", {"share.auto.offset.reset": "earliest"})
    cluster.topic(name="calls")
    producer = Producer({"bootstrap.servers": own_broker.address})
    for number in range(3):
        producer.produce("calls", b"call %d" % number)
    assert not producer.flush(SECONDS_MAX)
    (program,) = blocks(PROJECT / "docs" / "retries.md", "python")
    output = tmp_path / "output"
    with running(program, own_broker, output):
        eventually(lambda: len(printed(output)) >= 5, awaited="the records are delivered again")
    lines = printed(output)
    assert lines[:3] == ["0 1", "1 1", "2 1"]
    assert lines[3:] == ["0 2", "1 2"], "the last line may be cut"
