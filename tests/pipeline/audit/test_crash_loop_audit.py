"""A broker killed in a loop under load, audited: the log agrees with the clients about each record.

Two librdkafka share consumers of one group accept, release and reject while the broker is killed and started
again on the same data. Each acknowledgement that the broker confirmed must be in the audit. A delivery that
ended with a crash isn't recorded, and it isn't counted. So all deliveries before the one that a client saw
have an outcome.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import (
    AcknowledgeType,
    KafkaError,
    KafkaException,
    Message,
    ShareConsumer,
    TopicPartition,
)

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.cluster import Cluster
from tests.clients.installation import installed_barnabas
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.test_crash_loop import Ledger, ProducerWork, Worker, at_work, crash
from tests.pipeline.audit.auditing import Audited, Row

KILLS = 3
PARTITIONS = 2
CONFIRMED_BETWEEN_KILLS = 150
LOCK_MS = 3000
POLL_SECONDS = 0.1
COMMIT_SECONDS = 1.0

Place = tuple[int, int]
"""Partition and offset of a record."""
Acknowledged = tuple[int, AcknowledgeType]
"""The number of the delivery, and the type of its acknowledgement."""


class Clients:
    """By record, the deliveries that clients saw, and the confirmed acknowledgements."""

    def __init__(self) -> None:
        self.seen: dict[Place, set[int]] = defaultdict(set)
        self.confirmed: dict[Place, set[Acknowledged]] = defaultdict(set)


class Work:
    """One share consumer: releases some records the first time, rejects others, accepts the rest."""

    def __init__(self, consumer: ShareConsumer, clients: Clients) -> None:
        self._consumer = consumer
        self._clients = clients
        self._answered: dict[Place, Acknowledged] = {}
        consumer.set_acknowledgement_commit_callback(self._note)

    def __call__(self) -> bool:
        messages = [message for message in self._consumer.poll(POLL_SECONDS) if message.error() is None]
        for message in messages:
            self._answer(message)
        if messages:
            self._consumer.commit_sync(COMMIT_SECONDS)
        return bool(messages)

    def _answer(self, message: Message) -> None:
        place = message.partition() or 0, message.offset() or 0
        delivery_count = message.delivery_count() or 1
        self._clients.seen[place].add(delivery_count)
        kind = _answer_to(place[1], delivery_count)
        self._answered[place] = delivery_count, kind
        self._consumer.acknowledge(message, kind)

    def _note(self, offsets: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        if failure is None:
            for partition, confirmed in offsets.items():
                for offset in confirmed:
                    place = partition.partition, offset
                    self._clients.confirmed[place].add(self._answered[place])


def _answer_to(offset: int, delivery_count: int) -> AcknowledgeType:
    if offset % 7 == 0 and delivery_count == 1:
        return AcknowledgeType.RELEASE
    return AcknowledgeType.REJECT if offset % 11 == 0 else AcknowledgeType.ACCEPT


class Producing(ProducerWork):
    """Also notes where each record is that the broker has confirmed."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic, Ledger())
        self.places: set[Place] = set()

    def _note(self, error: KafkaError | None, message: Message) -> None:
        super()._note(error, message)
        if error is None:
            self.places.add((message.partition() or 0, message.offset() or 0))


@contextmanager
def working_consumer(broker: BrokerProcess, group: str, topic: str, clients: Clients) -> Generator[Worker]:
    """A librdkafka share consumer at work."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        with at_work(Worker("share consumer", Work(consumer, clients))) as worker:
            yield worker
    finally:
        consumer.close()


def test_an_audit_agrees_with_the_clients(tmp_path: Path) -> None:
    settings = {**TEST_SETTINGS, "group.share.record.lock.duration.ms": str(LOCK_MS)}
    data = tmp_path / "data"
    clients = Clients()
    with started(BrokerProcess(installed_barnabas(), data, settings)) as broker:
        topic, produced = work_through_crashes(broker, data, clients)
        audits = audits_of(data, topic)
    for audited in audits:
        assert audited.violations == []
        assert audited.history["begins"] == "whole"
    assert max(audited.history["leaderEpochCount"] for audited in audits) > 1
    check_agreement(clients, produced, by_place(audits))


def work_through_crashes(broker: BrokerProcess, data: Path, clients: Clients) -> tuple[str, set[Place]]:
    """The topic, when all of its records are done, and the places of the records that were produced."""
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(PARTITIONS), cluster.group()
    production = Producing(broker.address, topic)
    with (
        working_consumer(broker, group, topic, clients) as one,
        working_consumer(broker, group, topic, clients) as other,
        at_work(Worker("producer", production)) as producing,
    ):
        for kill in range(1, KILLS + 1):
            wait_for_answers(clients, kill * CONFIRMED_BETWEEN_KILLS)
            crash(broker, [one, other])
        producing.end()
        assert production.producer.flush(SECONDS_MAX) == 0
        eventually(lambda: done_in(data, topic) >= production.places, awaited="all is done")
    return topic, production.places


def wait_for_answers(clients: Clients, count: int) -> None:
    eventually(lambda: len(clients.confirmed) >= count, awaited=f"{count} records' answers are confirmed")


def audits_of(data: Path, topic: str) -> list[Audited]:
    """An audit of each partition, which the broker goes on writing."""
    return [Audited(data, (topic, partition)) for partition in range(PARTITIONS)]


def done_in(data: Path, topic: str) -> set[Place]:
    """The records that are done in the log."""
    found = by_place(audits_of(data, topic))
    return {place for place, rows in found.items() if any(row["outcome"] != "available" for row in rows)}


def by_place(audits: Sequence[Audited]) -> Mapping[Place, list[Row]]:
    """The outcomes of each record."""
    found: dict[Place, list[Row]] = defaultdict(list)
    for audited in audits:
        for row in audited.deliveries:
            for offset in range(row["firstOffset"], row["lastOffset"] + 1):
                found[row["partition"], offset].append(row)
    return found


def check_agreement(
    clients: Clients, produced: set[Place], deliveries: Mapping[Place, Sequence[Row]]
) -> None:
    for place in produced | set(clients.seen):
        rows = deliveries[place]
        ended = [row for row in rows if row["outcome"] != "available"]
        assert len(ended) == 1, f"{place} is done once: {rows}"
        for answer in clients.confirmed[place]:
            assert any(tells(row, answer) for row in rows), f"{place}, {answer}: {rows}"
        earlier = set(range(1, max(clients.seen[place], default=1)))
        assert earlier <= {row["deliveryCount"] for row in rows}, f"{place}: {rows}"


def tells(row: Row, answer: Acknowledged) -> bool:
    """Whether the row is the outcome of that acknowledgement; one that only a checkpoint has has no cause."""
    delivery_count, kind = answer
    if row["cause"] is None:
        return kind in _ANSWERS[row["outcome"]] and row["deliveryCount"] in (None, delivery_count)
    return (row["cause"], row["deliveryCount"]) == (_CAUSES[kind], delivery_count)


_CAUSES = {
    AcknowledgeType.ACCEPT: "accept",
    AcknowledgeType.RELEASE: "release",
    AcknowledgeType.REJECT: "reject",
}
_ANSWERS = {
    "acknowledged": {AcknowledgeType.ACCEPT},
    "archived": {AcknowledgeType.REJECT},
    "available": {AcknowledgeType.RELEASE},
    "unknown": {AcknowledgeType.ACCEPT, AcknowledgeType.REJECT},
}
