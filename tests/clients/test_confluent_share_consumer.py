"""confluent-kafka's ShareConsumer (librdkafka: share APIs of version 1, no renewing) against the broker."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer, TopicPartition

from tests.clients.cluster import NEVER_MS, Cluster, numbered, unique
from tests.clients.confluent_polling import poll, poll_some, poll_values, settle, share_consumer, text
from tests.clients.java_polling import wait_for_lag
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe

LOCK_MS = 1000
LONG_LOCKS = {"share.record.lock.duration.ms": str(NEVER_MS)}
"""For the records that are delivered again: however slow the machine is, they are acknowledged in time."""

OpenConsumer = Callable[..., ShareConsumer]

HOLD_RECORDS_FOR_EVER = """
import signal, sys
from tests.clients.confluent_polling import poll_some, share_consumer
consumer = share_consumer(*sys.argv[1:])
print(len(poll_some(consumer)), flush=True)
signal.pause()
"""


@pytest.fixture
def open_consumer(bootstrap: str) -> Iterator[OpenConsumer]:
    """Opens consumers (with explicit acknowledgement by default) that are closed after the test."""
    opened: list[ShareConsumer] = []

    def open_one(group: str, topic: str, **options: Any) -> ShareConsumer:
        opened.append(share_consumer(bootstrap, group, topic, **options))
        return opened[-1]

    yield open_one
    for consumer in opened:
        consumer.close()


def test_implicit_mode_accepts_the_previous_records_with_the_next_poll(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(1000))
    consumer = open_consumer(group, topic, mode="implicit")
    assert poll_values(consumer, 1000) == numbered(1000)
    consumer.commit_sync(SECONDS_MAX)
    wait_for_lag(probe, group, 0)


def test_accept_release_and_reject_each_have_their_effect(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, ["good", "again", "bad"])
    consumer = open_consumer(group, topic)
    good, again, bad = poll_some(consumer)
    consumer.acknowledge(good, AcknowledgeType.ACCEPT)
    consumer.acknowledge(again, AcknowledgeType.RELEASE)
    consumer.acknowledge(bad, AcknowledgeType.REJECT)
    assert list(consumer.commit_sync(SECONDS_MAX).values()) == [None]
    redelivered = poll_some(consumer)
    assert [(text(message), message.delivery_count()) for message in redelivered] == [("again", 2)]
    settle(consumer, redelivered, consumer.acknowledge)
    wait_for_lag(probe, group, 0)


def test_asynchronous_commit_passes_its_outcome_to_the_callback(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(3))
    consumer = open_consumer(group, topic)
    outcomes: list[tuple[set[int], KafkaException | None]] = []

    def note(offsets: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        outcomes.extend((each, failure) for each in offsets.values())

    consumer.set_acknowledgement_commit_callback(note)
    for message in poll_some(consumer):
        consumer.acknowledge(message)
    consumer.commit_async()

    def outcome_came() -> bool:
        poll(consumer)
        return bool(outcomes)

    eventually(outcome_came, awaited="the callback was called")
    assert outcomes == [({0, 1, 2}, None)]


def test_an_expired_lock_hands_the_records_to_another_consumer(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=LOCK_MS)
    cluster.produce_batch(topic, numbered(3))
    slow = open_consumer(group, topic)
    late = poll_some(slow)
    cluster.set_group(group, LONG_LOCKS)
    other = open_consumer(group, topic)
    redelivered = poll_some(other)
    assert [text(message) for message in redelivered] == numbered(3)
    assert {message.delivery_count() for message in redelivered} == {2}
    for message in late:
        slow.acknowledge(message)
    (failure,) = slow.commit_sync(SECONDS_MAX).values()
    assert failure is not None
    assert failure.args[0].name() == "INVALID_RECORD_STATE"
    settle(other, redelivered, other.acknowledge)


def test_records_of_a_killed_process_go_to_the_others_immediately(
    bootstrap: str, cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.produce_batch(topic, numbered(5))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_RECORDS_FOR_EVER, bootstrap, group, topic],
        stdout=subprocess.PIPE,
        text=True,
    ) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "5\n"
        survivor = open_consumer(group, topic)
        assert poll(survivor) == []
        doomed.kill()
    redelivered = poll_some(survivor)
    assert [(text(message), message.delivery_count()) for message in redelivered] == [
        (value, 2) for value in numbered(5)
    ]
    settle(survivor, redelivered, survivor.acknowledge)


def test_a_record_is_archived_after_its_last_delivery(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(delivery_count_limit=3)
    cluster.produce(topic, ["poison"])
    consumer = open_consumer(group, topic)
    for delivery_count in (1, 2, 3):
        (message,) = poll_some(consumer)
        assert message.delivery_count() == delivery_count
        consumer.acknowledge(message, AcknowledgeType.RELEASE)
        assert list(consumer.commit_sync(SECONDS_MAX).values()) == [None]
    wait_for_lag(probe, group, 0)


def test_several_consumers_share_one_partition_without_overlap(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    consumers = [open_consumer(group, topic, mode="implicit") for _ in range(3)]
    delivered: list[list[str]] = [[] for _ in consumers]
    produced: list[str] = []

    def produce_and_poll_all() -> bool:
        batch = numbered(20, f"batch-{len(produced)}")
        cluster.produce(topic, batch)
        produced.extend(batch)
        for consumer, values in zip(consumers, delivered, strict=True):
            values.extend(map(text, poll(consumer)))
        return all(delivered)

    eventually(produce_and_poll_all, awaited="each consumer gets a part")

    def rest() -> bool:
        for consumer, values in zip(consumers, delivered, strict=True):
            values.extend(map(text, poll(consumer)))
        return sum(map(len, delivered)) >= len(produced)

    eventually(rest, awaited="all records are delivered")
    assert sorted(value for values in delivered for value in values) == sorted(produced)


def test_close_accepts_acknowledged_records_and_releases_the_rest(
    bootstrap: str, cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(4))
    leaving = share_consumer(bootstrap, group, topic)
    for message in poll_some(leaving)[:2]:
        leaving.acknowledge(message)
    leaving.close()
    consumer = open_consumer(group, topic)
    redelivered = poll_some(consumer)
    assert [text(message) for message in redelivered] == numbered(4)[2:]
    settle(consumer, redelivered, consumer.acknowledge)


def test_all_partitions_of_a_topic_are_read(cluster: Cluster, open_consumer: OpenConsumer) -> None:
    topic, group = cluster.topic(partition_count=4), cluster.group()
    cluster.produce(topic, numbered(400), sticky_partitioning_linger_ms=0, linger_ms=1)
    consumer = open_consumer(group, topic, mode="implicit")
    assert sorted(poll_values(consumer, 400)) == sorted(numbered(400))


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_transactions_leave_no_lag(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer, isolation_level: str
) -> None:
    topic, group = cluster.topic(), cluster.group(isolation_level=isolation_level)
    consumer = open_consumer(group, topic, mode="implicit")
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("id"), "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(SECONDS_MAX)
    is_uncommitted = isolation_level == "read_uncommitted"
    for end in (producer.commit_transaction, producer.abort_transaction):
        is_delivered = is_uncommitted or end == producer.commit_transaction
        producer.begin_transaction()
        producer.produce(topic, "value")
        assert producer.flush(SECONDS_MAX) == 0
        if is_uncommitted:
            poll_values(consumer, 1)
            consumer.commit_sync(SECONDS_MAX)
        end(SECONDS_MAX)
        if is_delivered and not is_uncommitted:
            poll_values(consumer, 1)
            consumer.commit_sync(SECONDS_MAX)

    def lag_is_gone() -> bool:
        assert poll(consumer) == []
        (offset,) = probe.group_offsets(group)
        return offset.lag == 0

    eventually(lag_is_gone, awaited="the markers no longer count as lag")


@pytest.mark.barnabas
def test_a_forced_record_limit_makes_max_poll_records_exact(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    """librdkafka sends max.poll.records, but has no acquire mode."""
    topic, plain, limited = cluster.topic(), cluster.group(), cluster.group(record_limit_force="true")
    cluster.produce_batch(topic, numbered(50))
    counts: dict[str, list[int]] = {}
    for group in (plain, limited):
        consumer = open_consumer(group, topic, max_poll_records=7)
        counts[group] = []
        while sum(counts[group]) < 50:
            messages = poll_some(consumer)
            settle(consumer, messages, consumer.acknowledge)
            counts[group].append(len(messages))
    assert counts == {plain: [50], limited: [7] * 7 + [1]}
