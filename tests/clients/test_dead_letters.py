"""Unmodified share consumers whose group has dead letters, and kills of the broker while it writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.committed_records import committed_records
from tests.clients.confluent_polling import poll_some, settle, share_consumer
from tests.clients.java_polling import poll_some as java_poll_some
from tests.clients.java_polling import wait_for_lag
from tests.clients.polling import eventually
from tests.clients.share_probe import ShareProbe

pytestmark = pytest.mark.barnabas

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPIES_RECORDS = "errors.deadletterqueue.copy.record.enable"
KILLS = 6
RECORDS_BETWEEN_KILLS = 40
COMMIT_SECONDS = 5
"""A commit that is lost with the broker ends with it, and counts as not confirmed."""


def group_with_letters(cluster: Cluster, *, delivery_count_limit: int = 5) -> tuple[str, str]:
    """A fresh group, and the name of its topic for dead letters."""
    group, letter_topic = cluster.group(delivery_count_limit=delivery_count_limit), unique("dlq.letters")
    cluster.set_group(group, {TOPIC_NAME: letter_topic, COPIES_RECORDS: "true"})
    return group, letter_topic


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes processes after the test."""
    with ExitStack() as stack:
        yield stack


def originals(letters: Sequence[Message]) -> list[int]:
    """The offsets of the records that the letters speak of."""
    return [int(headers(one)["__dlq.errors.offset"]) for one in letters]


def headers(letter: Message) -> dict[str, str]:
    """The headers of a letter, as text."""
    found: Any = letter.headers()  # Their type information is incomplete.
    return {name: value.decode() for name, value in found}


def test_a_java_consumer_rejects_records(cluster: Cluster, probe: ShareProbe) -> None:
    topic = cluster.topic()
    group, letter_topic = group_with_letters(cluster)
    offsets = cluster.produce(topic, numbered(6))
    consumer = probe.consumer(unique("consumer"), group, [topic], share_acknowledgement_mode="explicit")
    with closing(consumer):
        left = len(offsets)
        while left:
            records = java_poll_some(consumer)
            for record in records:
                kind = "REJECT" if record.offset % 2 else "ACCEPT"
                consumer.acknowledge([record], kind)
            assert [one.error for one in consumer.commit_sync()] == [None]
            left -= len(records)
    rejected = [offset for offset in offsets if offset % 2]
    letters = committed_records(cluster.bootstrap, letter_topic, len(rejected))
    assert originals(letters) == rejected
    assert [one.value() for one in letters] == [
        f"record-{offsets.index(offset)}".encode() for offset in rejected
    ]
    assert {headers(one)["__dlq.errors.message"] for one in letters} == {"Offset rejected by client."}
    wait_for_lag(probe, group, 0)


def test_a_confluent_consumer_releases_a_record_too_often(cluster: Cluster, probe: ShareProbe) -> None:
    topic = cluster.topic()
    group, letter_topic = group_with_letters(cluster, delivery_count_limit=2)
    (offset,) = cluster.produce(topic, ["poison"])
    with closing(share_consumer(cluster.bootstrap, group, topic)) as consumer:
        for _ in range(2):
            settle(
                consumer,
                poll_some(consumer),
                lambda message: consumer.acknowledge(message, AcknowledgeType.RELEASE),
            )
        (letter,) = committed_records(cluster.bootstrap, letter_topic, 1)
    assert headers(letter) == {
        "__dlq.errors.topic": topic,
        "__dlq.errors.partition": "0",
        "__dlq.errors.offset": str(offset),
        "__dlq.errors.group": group,
        "__dlq.errors.delivery.count": "2",
        "__dlq.errors.message": "Offset delivery count exceeded the threshold.",
    }
    assert letter.value() == b"poison"
    wait_for_lag(probe, group, 0)


class Rejecting:
    """A consumer that rejects each record that it gets, and the records whose rejection was confirmed."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self.confirmed: set[int] = set()

    def until_confirmed(self, count: int) -> None:
        """Return when this number of rejections is confirmed."""

        def enough() -> bool:
            self.reject_some()
            return len(self.confirmed) >= count

        eventually(enough, awaited=f"{count} rejections are confirmed")

    def reject_some(self) -> bool:
        """One poll and one commit; errors of a broker that is down are passed over."""
        try:
            messages = [one for one in self._consumer.poll(0.1) if one.error() is None]
        except KafkaException:
            return False
        for message in messages:
            self._consumer.acknowledge(message, AcknowledgeType.REJECT)
        try:
            results = self._consumer.commit_sync(COMMIT_SECONDS) if messages else {}
        except KafkaException:
            return False
        if messages and set(results.values()) == {None}:
            self.confirmed.update(offset for one in messages if (offset := one.offset()) is not None)
        return bool(messages)


@pytest.mark.clients
def test_each_rejected_record_has_one_letter_although_the_broker_is_killed(
    own_broker: BrokerProcess, stack: ExitStack
) -> None:
    cluster, probe = Cluster(own_broker.address), ShareProbe(own_broker.address)
    stack.callback(probe.kill)
    topic = cluster.topic()
    group, letter_topic = group_with_letters(cluster)
    offsets = cluster.produce(topic, numbered(KILLS * RECORDS_BETWEEN_KILLS), batch_num_messages=1)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": own_broker.address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 5,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    with closing(consumer):
        rejecting = Rejecting(consumer)
        for kill in range(1, KILLS + 1):
            rejecting.until_confirmed(kill * RECORDS_BETWEEN_KILLS // 2)
            own_broker.kill()
            own_broker.start()
        eventually(
            lambda: not rejecting.reject_some() and probe.group_offsets(group)[0].lag == 0,
            awaited="all records are rejected, and their letters are written",
        )
    letters = committed_records(own_broker.address, letter_topic, len(offsets))
    counts = Counter(originals(letters))
    assert set(counts) == set(offsets)
    assert {offset: count for offset, count in counts.items() if count > 1} == {}
    assert rejecting.confirmed <= set(counts)
