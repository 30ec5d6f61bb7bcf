"""Real share consumers in groups with `share.priority.header`, and the programs of docs/priority.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Producer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, unique
from tests.clients.confluent_polling import poll, share_consumer, text
from tests.clients.java_build import PROJECT
from tests.clients.java_polling import accept, poll_some, wait_for_lag
from tests.clients.page_commands import run_commands
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe
from tests.clients.test_readme import blocks, printed, running

pytestmark = pytest.mark.barnabas

COUNT = 40
URGENT = {"7": b"1", "20": b"9", "33": b"5"}
"""The headers of some records, by their values, which are their numbers."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes consumers after the test."""
    with ExitStack() as stack:
        yield stack


def produce(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 100})
    for number in map(str, range(COUNT)):
        producer.produce(topic, number.encode(), headers={"urgency": URGENT.get(number, b"0")})
    assert not producer.flush(SECONDS_MAX)


def expected() -> list[str]:
    urgent = sorted(URGENT, key=lambda number: URGENT[number], reverse=True)
    return urgent + [number for number in map(str, range(COUNT)) if number not in URGENT]


def test_a_java_consumer_gets_the_most_urgent_records_first(
    cluster: Cluster, probe: ShareProbe, stack: ExitStack
) -> None:
    topic, group = cluster.topic(), cluster.group(priority_header="urgency")
    produce(cluster, topic)
    consumer = probe.consumer(
        unique("consumer"),
        group,
        [topic],
        share_acknowledgement_mode="explicit",
        share_acquire_mode="record_limit",
        max_poll_records=1,
    )
    stack.enter_context(closing(consumer))
    values: list[str | None] = []
    while len(values) < COUNT:
        records = poll_some(consumer)
        values += [record.value for record in records]
        accept(consumer, records)
    assert values == expected()
    wait_for_lag(probe, group, 0)


def test_urgent_records_come_first_after_a_kill_of_the_broker(
    own_broker: BrokerProcess, stack: ExitStack
) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), cluster.group(priority_header="urgency", record_limit_force="true")
    produce(cluster, topic)
    own_broker.kill()
    own_broker.start()
    consumer = share_consumer(cluster.bootstrap, group, topic, max_poll_records=5)
    stack.enter_context(closing(consumer))
    values: list[str] = []

    def all_came() -> bool:
        for message in poll(consumer):
            values.append(text(message))
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        return len(values) >= COUNT

    eventually(all_came, awaited="all records are delivered")
    assert sorted(values) == sorted(expected())
    assert URGENT.keys() <= set(values[:5])


def test_the_programs_of_the_page_get_urgent_records_first(own_broker: BrokerProcess, tmp_path: Path) -> None:
    page = PROJECT / "docs" / "priority.md"
    assert run_commands(page, own_broker) == 3
    producer, consumer = blocks(page, "python")
    done, output = tmp_path / "done", tmp_path / "output"
    with running(producer + 'print("done")\nprint()\n', own_broker, done):
        eventually(lambda: printed(done), awaited="the records are produced")
    with running(consumer, own_broker, output):
        eventually(lambda: len(printed(output)) > 90, awaited="the records are delivered")
    place = printed(output).index("100 password reset")
    assert place < 10
