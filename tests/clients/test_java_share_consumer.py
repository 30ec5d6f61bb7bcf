"""Java's KafkaShareConsumer against the broker: the promises of KIP-932, KIP-1206 and KIP-1222 to
applications.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.clients.cluster import NEVER_MS, Cluster, numbered, unique
from tests.clients.java_polling import accept, poll_some, poll_values, wait_for_lag
from tests.clients.polling import eventually
from tests.clients.share_probe import JavaError, JavaShareConsumer, ShareProbe

LOCK_MS = 1000
RENEWED_LOCK_MS = 6000
"""A renewal every few hundred ms comes in time, also on a busy machine."""

OpenConsumer = Callable[..., JavaShareConsumer]


@pytest.fixture
def open_consumer(probe: ShareProbe) -> Iterator[OpenConsumer]:
    """Opens consumers (with explicit acknowledgement by default) that are closed after the test."""
    opened: list[JavaShareConsumer] = []

    def open_one(group: str, *topics: str, mode: str = "explicit", **config: object) -> JavaShareConsumer:
        consumer = probe.consumer(
            unique("consumer"), group, topics, share_acknowledgement_mode=mode, **config
        )
        opened.append(consumer)
        return consumer

    yield open_one
    for consumer in opened:
        consumer.close()


def test_implicit_mode_accepts_the_previous_records_with_the_next_poll(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(10))
    consumer = open_consumer(group, topic, mode="implicit")
    assert poll_values(consumer, 10) == numbered(10)
    assert consumer.poll() == []
    wait_for_lag(probe, group, 0)


def test_accept_release_and_reject_each_have_their_effect(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, ["good", "again", "bad"])
    consumer = open_consumer(group, topic)
    good, again, bad = poll_some(consumer)
    consumer.acknowledge([good], "ACCEPT")
    consumer.acknowledge([again], "RELEASE")
    consumer.acknowledge([bad], "REJECT")
    assert [result.error for result in consumer.commit_sync()] == [None]
    redelivered = poll_some(consumer)
    assert [(record.value, record.delivery_count) for record in redelivered] == [("again", 2)]
    accept(consumer, redelivered)
    wait_for_lag(probe, group, 0)


def test_explicit_mode_refuses_a_poll_before_all_is_acknowledged(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(2))
    consumer = open_consumer(group, topic)
    first, second = poll_some(consumer)
    consumer.acknowledge([first])
    with pytest.raises(JavaError, match="IllegalStateException"):
        consumer.poll()
    accept(consumer, [second])


def test_asynchronous_commit_passes_its_outcome_to_the_callback(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(3))
    consumer = open_consumer(group, topic)
    consumer.acknowledge(poll_some(consumer))
    consumer.commit_async()

    def outcomes() -> Sequence[object]:
        consumer.poll(50)
        return consumer.outcomes()

    assert eventually(outcomes, awaited="the callback was called") == [(topic, 0, None, (0, 1, 2))]


def test_renewing_keeps_records_beyond_the_lock_duration(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=RENEWED_LOCK_MS)
    cluster.produce_batch(topic, numbered(3))
    holder, rival = open_consumer(group, topic), open_consumer(group, topic)
    records = poll_some(holder)
    assert holder.lock_timeout_ms() == RENEWED_LOCK_MS

    began = time.monotonic()

    def renewed_while_the_rival_waits() -> bool:
        """Whether the records have been held for longer than a lock lasts."""
        holder.acknowledge(records, "RENEW")
        assert [result.error for result in holder.commit_sync()] == [None]
        assert rival.poll(100) == []
        assert poll_some(holder) == records
        return time.monotonic() - began > 1.2 * RENEWED_LOCK_MS / 1000

    eventually(renewed_while_the_rival_waits, awaited="the records are held for longer than a lock")
    accept(holder, records)


def test_an_expired_lock_hands_the_records_to_another_consumer(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=LOCK_MS)
    cluster.produce_batch(topic, numbered(3))
    slow = open_consumer(group, topic)
    records = poll_some(slow)
    cluster.set_group(group, {"share.record.lock.duration.ms": str(NEVER_MS)})
    other = open_consumer(group, topic)
    redelivered = poll_some(other)
    assert [record.value for record in redelivered] == numbered(3)
    assert {record.delivery_count for record in redelivered} == {2}
    slow.acknowledge(records)
    assert [result.error for result in slow.commit_sync()] == ["InvalidRecordStateException"]
    accept(other, redelivered)


def test_record_limit_delivers_no_more_than_requested_from_one_batch(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(20))
    strict = {"share_acquire_mode": "record_limit", "max_poll_records": 5}
    consumer = open_consumer(group, topic, **strict)
    for first in range(0, 20, 5):
        records = poll_some(consumer)
        assert [record.offset for record in records] == list(range(first, first + 5))
        accept(consumer, records)


def test_batch_optimized_delivers_the_whole_producer_batch(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(20))
    consumer = open_consumer(group, topic, max_poll_records=5)
    records = poll_some(consumer)
    assert [record.value for record in records] == numbered(20)
    accept(consumer, records)


def test_records_of_a_killed_process_go_to_the_others_immediately(
    cluster: Cluster, new_probe: Callable[[], ShareProbe], open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=NEVER_MS)
    cluster.produce_batch(topic, numbered(5))
    doomed = new_probe()
    lost = doomed.consumer("doomed", group, [topic], share_acknowledgement_mode="explicit")
    assert len(poll_some(lost)) == 5
    survivor = open_consumer(group, topic)
    assert survivor.poll() == []
    doomed.kill()
    redelivered = poll_some(survivor)
    assert [(record.value, record.delivery_count) for record in redelivered] == [
        (value, 2) for value in numbered(5)
    ]
    accept(survivor, redelivered)


def test_a_record_is_archived_after_its_last_delivery(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(delivery_count_limit=3)
    cluster.produce(topic, ["poison"])
    consumer = open_consumer(group, topic)
    for delivery_count in (1, 2, 3):
        (record,) = poll_some(consumer)
        assert record.delivery_count == delivery_count
        consumer.acknowledge([record], "RELEASE")
        assert [result.error for result in consumer.commit_sync()] == [None]
    wait_for_lag(probe, group, 0)
    assert consumer.poll() == []


def test_several_consumers_share_one_partition_without_overlap(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    strict = {"share_acquire_mode": "record_limit", "max_poll_records": 10}
    consumers = [open_consumer(group, topic, mode="implicit", **strict) for _ in range(3)]
    delivered: list[list[str | None]] = [[] for _ in consumers]

    produced: list[str] = []

    def poll_all() -> None:
        for consumer, values in zip(consumers, delivered, strict=True):
            values.extend(record.value for record in consumer.poll(50))

    def each_has_a_part() -> bool:
        """Produces more until then: the consumers join one after another."""
        batch = numbered(60, f"batch-{len(produced)}")
        probe.produce(topic, batch)
        produced.extend(batch)
        poll_all()
        return all(delivered)

    def all_are_delivered() -> bool:
        poll_all()
        return sum(map(len, delivered)) >= len(produced)

    eventually(each_has_a_part, awaited="each consumer gets a part")
    eventually(all_are_delivered, awaited="all records are delivered")
    assert sorted(value or "" for values in delivered for value in values) == sorted(produced)


def test_close_accepts_acknowledged_records_and_releases_the_rest(
    cluster: Cluster, probe: ShareProbe, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce_batch(topic, numbered(4))
    leaving = probe.consumer(unique("leaving"), group, [topic], share_acknowledgement_mode="explicit")
    records = poll_some(leaving)
    leaving.acknowledge(records[:2])
    assert leaving.close() == [(topic, 0, None, (0, 1))]
    consumer = open_consumer(group, topic)
    redelivered = poll_some(consumer)
    assert [record.value for record in redelivered] == numbered(4)[2:]
    accept(consumer, redelivered)


def test_a_changed_subscription_takes_effect_while_consuming(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    before, after, group = cluster.topic(), cluster.topic(partition_count=3), cluster.group()
    cluster.produce(before, ["before"])
    cluster.produce(after, numbered(6, "after"))
    consumer = open_consumer(group, before, mode="implicit")
    assert poll_values(consumer, 1) == ["before"]
    consumer.subscribe(after)
    assert sorted(map(str, poll_values(consumer, 6))) == numbered(6, "after")


def test_a_latest_group_starts_with_the_records_produced_after_it_joined(
    cluster: Cluster, open_consumer: OpenConsumer
) -> None:
    topic, group = cluster.topic(), cluster.group(start="latest")
    cluster.produce(topic, ["old"])
    consumer = open_consumer(group, topic, mode="implicit")
    values: list[str | None] = []

    def produce_and_poll() -> bool:
        cluster.produce(topic, ["new"], linger_ms=0)
        values.extend(record.value for record in consumer.poll())
        return bool(values)

    eventually(produce_and_poll, awaited="a new record is delivered")
    assert set(values) == {"new"}
