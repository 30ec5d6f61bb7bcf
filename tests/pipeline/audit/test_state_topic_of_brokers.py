"""State topics of Apache Kafka and Barnabas: the audit agrees with a share consumer's acknowledgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from barnabas.pipeline.audit.tables import HISTORY, VIOLATION
from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.installation import installed_barnabas
from tests.clients.polling import SECONDS_MAX, eventually
from tests.pipeline.audit.auditing import Row
from tests.pipeline.audit.state_topic import AuditedStateTopic
from tests.pipeline.brokers import KINDS, new_broker

pytestmark = pytest.mark.long

RECORD_COUNT = 300
NEW_COUNT = 7
POLL_SECONDS = 1.0


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess | LocalBroker]:
    """One that keeps share state in the topic, in the directory `broker/data`."""
    broker: BrokerProcess | LocalBroker
    if request.param == "kafka":
        broker = new_broker("kafka", tmp_path / "broker")
    else:
        settings = {**TEST_SETTINGS, "share.state.store": "topic"}
        broker = BrokerProcess(installed_barnabas(), tmp_path / "broker" / "data", settings)
    broker.start()
    yield broker
    broker.kill()


class Work:
    """Releases each seventh record twice, rejects each eleventh, accepts the others."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self.finished: Counter[AcknowledgeType] = Counter()

    def __call__(self) -> bool:
        for message in self._consumer.poll(POLL_SECONDS):
            self._answer(message)
        self._consumer.commit_sync(SECONDS_MAX)
        return self.finished.total() == RECORD_COUNT

    def _answer(self, message: Message) -> None:
        offset, delivery_count = message.offset() or 0, message.delivery_count() or 1
        kind = AcknowledgeType.REJECT if offset % 11 == 0 else AcknowledgeType.ACCEPT
        if offset % 7 == 0 and delivery_count < 3:
            kind = AcknowledgeType.RELEASE
        else:
            self.finished[kind] += 1
        self._consumer.acknowledge(message, kind)


def records(rows: list[Row], outcome: str) -> int:
    return sum(row["recordCount"] for row in rows if row["outcome"] == outcome)


def test_outcomes_and_open_records_are_those_of_the_consumer(
    broker: BrokerProcess | LocalBroker, tmp_path: Path
) -> None:
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, [str(number) for number in range(RECORD_COUNT)])
    consumer = ShareConsumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe([topic])
    work = Work(consumer)
    eventually(work, awaited="all records are finished")
    consumer.close()
    cluster.produce(topic, [str(number) for number in range(NEW_COUNT)])
    broker.kill()

    audited = AuditedStateTopic(tmp_path / "broker" / "data")
    (history,) = audited.table(HISTORY)
    assert (history["topic"], history["group"], history["begins"]) == (topic, group, "whole")
    assert history["openRecordCount"] == NEW_COUNT
    assert audited.table(VIOLATION) == []
    deliveries = audited.deliveries
    assert records(deliveries, "acknowledged") == work.finished[AcknowledgeType.ACCEPT]
    assert records(deliveries, "archived") == work.finished[AcknowledgeType.REJECT]
    assert records(deliveries, "available") == 2 * len(range(0, RECORD_COUNT, 7))
