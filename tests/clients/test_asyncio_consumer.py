"""Barnabas's own consumer and producer against a real broker over real sockets, and with --broker against
Apache Kafka.
"""

import asyncio
from typing import Any

import pytest

from barnabas.client import (
    CommitFailedError,
    Consumer,
    ConsumerRecord,
    Producer,
    ProducerFencedError,
    ShareConsumer,
    TopicPartition,
)
from tests.clients.asyncio_polling import eventually, take, values
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import Cluster, numbered, unique

KILLS = 3

Records = list[ConsumerRecord[bytes | None, bytes | None]]
BytesConsumer = Consumer[bytes | None, bytes | None]


def open_consumer(bootstrap: str, group: str, *topics: str, **options: Any) -> BytesConsumer:
    given: dict[str, Any] = {"auto_offset_reset": "earliest", **options}
    return Consumer(bootstrap, group=group, topics=topics, **given)


async def take_exactly(count: int, *consumers: BytesConsumer) -> Records:
    """Reads this number of records with all of them together; further polls find no more."""
    records: Records = []
    while len(records) < count:
        for consumer in consumers:
            records += await consumer.poll(timeout=0.05)
    for consumer in consumers:
        records += await consumer.poll(timeout=0.5)
    assert len(records) == count
    return records


async def test_records_that_were_sent_are_read_with_all_their_fields(
    bootstrap: str, cluster: Cluster
) -> None:
    topic = cluster.topic(partition_count=3)
    async with (
        Producer(bootstrap, compression="zstd", linger_ms=5) as producer,
        open_consumer(bootstrap, unique("group"), topic) as consumer,
    ):
        results = [
            await producer.send(topic, value.encode(), key=b"k" + value.encode(), headers=[("h", b"1")])
            for value in numbered(1000)
        ]
        await producer.flush()
        sent = {(one.result().partition, one.result().offset) for one in results}
        records = await take(consumer, 1000)
        assert {(one.partition, one.offset) for one in records} == sent
        assert sorted(values(records)) == sorted(numbered(1000))
        assert all(one.key == b"k" + (one.value or b"") and one.headers == (("h", b"1"),) for one in records)


async def test_two_consumers_share_a_topic_and_hand_it_over(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(partition_count=4), unique("group")
    cluster.produce(topic, numbered(400), sticky_partitioning_linger_ms=0, linger_ms=1)
    async with open_consumer(bootstrap, group, topic) as staying:
        seen = values(await take(staying, 400))
        async with open_consumer(bootstrap, group, topic) as leaving:

            async def both_have_partitions() -> bool:
                seen.extend(values(await staying.poll(timeout=0.05)))
                seen.extend(values(await leaving.poll(timeout=0.05)))
                return len(staying.assignment()) == len(leaving.assignment()) == 2

            await eventually(both_have_partitions)
            cluster.produce(topic, numbered(400), sticky_partitioning_linger_ms=0, linger_ms=1)
            seen += values(await take_exactly(400, staying, leaving))
        assert sorted(seen) == sorted([*numbered(400), *numbered(400)])

        async def all_are_back() -> bool:
            assert await staying.poll(timeout=0.05) == []
            return len(staying.assignment()) == 4

        await eventually(all_are_back)


async def test_a_slow_application_leaves_and_comes_back(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(3))
    async with open_consumer(
        bootstrap, group, topic, max_poll_interval_ms=5_000, enable_auto_commit=False
    ) as slow:
        await take(slow, 3)

        async def is_refused() -> bool:
            try:
                await slow.commit({TopicPartition(topic, 0): 0})
            except CommitFailedError:
                return True
            return False

        await eventually(is_refused)
        assert values(await take(slow, 3)) == numbered(3)
        await slow.commit()


async def test_a_pattern_is_evaluated_by_the_broker(bootstrap: str, cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.produce(topic, numbered(3))
    async with Consumer(
        bootstrap, group=unique("group"), pattern=f"{topic[:-2]}..", auto_offset_reset="earliest"
    ) as consumer:
        assert values(await take(consumer, 3)) == numbered(3)


async def test_a_static_member_that_starts_again_takes_its_place(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), unique("group")
    cluster.produce(topic, numbered(4))
    for first in (0, 2):
        async with open_consumer(bootstrap, group, topic, group_instance_id="one") as consumer:
            assert values(await take(consumer, 2)) == numbered(4)[first : first + 2]


async def test_each_record_counts_once_in_a_chain_of_transactions(bootstrap: str, cluster: Cluster) -> None:
    source, results = cluster.topic(partition_count=2), cluster.topic()
    group, writer_id = unique("group"), unique("writer")
    cluster.produce(source, numbered(200), sticky_partitioning_linger_ms=0, linger_ms=1)

    copied_count = 0

    async def copy(*, fails: bool) -> None:
        nonlocal copied_count
        async with (
            Producer(bootstrap, transactional_id=writer_id) as producer,
            open_consumer(bootstrap, group, source, enable_auto_commit=False) as consumer,
        ):
            await producer.init_transactions()
            while copied_count < 200:
                records = await consumer.poll(max_records=20)
                async with producer.transaction():
                    for record in records:
                        await producer.send(results, record.value)
                    offsets = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
                    await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                    if fails and copied_count >= 60:
                        await producer.flush()
                        raise ZeroDivisionError
                copied_count += len(records)

    with pytest.raises(ZeroDivisionError):
        await copy(fails=True)
    await copy(fails=False)
    async with open_consumer(
        bootstrap, unique("group"), results, isolation_level="read_committed"
    ) as checking:
        assert sorted(values(await take_exactly(200, checking))) == sorted(numbered(200))


async def test_a_fenced_producer_is_told(bootstrap: str, cluster: Cluster) -> None:
    topic, writer_id = cluster.topic(), unique("writer")
    async with (
        Producer(bootstrap, transactional_id=writer_id) as old,
        Producer(bootstrap, transactional_id=writer_id) as new,
    ):
        await old.init_transactions()
        old.begin_transaction()
        await old.send_and_wait(topic, b"old")
        await new.init_transactions()
        with pytest.raises(ProducerFencedError):
            await old.commit_transaction()


async def test_a_share_consumer_tells_where_its_group_reads(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(5))
    async with ShareConsumer(bootstrap, group=group, topics=[topic]) as consumer:
        records = await take(consumer, 5)
        for record in records[:3]:
            record.accept()
        await consumer.commit()
        (name,) = await consumer.partitions_for(topic)
        assert await consumer.end_offsets([name]) == {name: 5}
        # Apache Kafka records the new start offset with a later change of the state.
        assert (await consumer.beginning_offsets([name]))[name] in {0, 3}
        assert consumer.subscription() == {topic}
        for record in records[3:]:
            record.release()
        await consumer.unsubscribe()
        assert consumer.subscription() == frozenset()
        consumer.subscribe([topic])
        (again, *_) = await take(consumer, 2)
        assert (again.offset, again.delivery_count) == (3, 2)


@pytest.mark.barnabas
async def test_nothing_is_lost_or_repeated_beyond_the_commits_when_the_broker_is_killed(
    own_broker: BrokerProcess,
) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(partition_count=2), unique("group")
    seen: list[str] = []
    async with (
        Producer(own_broker.address, batch_bytes=500) as producer,
        open_consumer(own_broker.address, group, topic) as consumer,
    ):

        async def produce() -> None:
            for value in numbered(3000):
                await producer.send(topic, value.encode())
                await asyncio.sleep(0)
            await producer.flush()

        producing = asyncio.create_task(produce())
        for kill in range(1, KILLS + 1):
            seen += values(await take(consumer, kill * 600 - len(seen)))
            own_broker.kill()
            await asyncio.to_thread(own_broker.start)
        seen += values(await take(consumer, 3000 - len(seen)))
        await producing
        await consumer.commit()
    assert sorted(seen) == sorted(numbered(3000))
