"""Barnabas's own share consumer against a real broker over real sockets, and with --broker against Apache
Kafka.
"""

import asyncio
from typing import Any

import pytest

from barnabas.client import Outcome, ShareConsumer, ShareRecord
from barnabas.protocol.errors import ErrorCode
from tests.clients.asyncio_polling import eventually, take, values
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster import NEVER_MS, Cluster, confluent_admin, numbered, unique

LOCK_MS = 1000
RENEWED_LOCK_MS = 6000
"""The client renews a lock while at least a third of it is left: two seconds, also for a busy machine."""
KILLS = 3

Records = list[ShareRecord[bytes | None, bytes | None]]
Consumer = ShareConsumer[bytes | None, bytes | None]


def open_consumer(bootstrap: str, group: str, topic: str, **options: Any) -> Consumer:
    return ShareConsumer(bootstrap, group=group, topics=[topic], **options)


async def test_accept_release_and_reject_each_have_their_effect(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, ["good", "again", "bad"])
    async with open_consumer(bootstrap, group, topic) as consumer:
        good, again, bad = await take(consumer, 3)
        good.accept()
        again.release()
        bad.reject()
        assert list((await consumer.commit()).values()) == [None]
        (redelivered,) = await take(consumer, 1)
        assert (redelivered.value, redelivered.delivery_count) == (b"again", 2)
        redelivered.accept()
        assert list((await consumer.commit()).values()) == [None]
        assert await consumer.poll(timeout=1.0) == []


async def test_a_consumer_that_restarts_for_each_record_sees_them_all(
    bootstrap: str, cluster: Cluster
) -> None:
    """Each start fetches ahead, and its end releases records that the test has not seen."""
    topic, group = cluster.topic(), cluster.group()
    for value in numbered(20):
        cluster.produce(topic, [value])
    seen: list[str] = []
    while len(seen) < 20:
        async with open_consumer(bootstrap, group, topic) as consumer:
            (record,) = await take(consumer, 1)
            await asyncio.sleep(0.05)  # the time of work on one record, while others are fetched
            record.accept()
            seen += values([record])
    assert sorted(seen) == sorted(numbered(20))


async def test_implicit_mode_accepts_the_previous_records_with_the_next_poll(
    bootstrap: str, cluster: Cluster
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(1000))
    async with open_consumer(bootstrap, group, topic, acknowledgement_mode="implicit") as consumer:
        assert values(await take(consumer, 1000)) == numbered(1000)
        assert list((await consumer.commit()).values()) == [None]
    async with open_consumer(bootstrap, group, topic) as other:
        assert await other.poll(timeout=2.0) == []


async def test_locks_are_renewed_while_a_record_is_worked_on(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=RENEWED_LOCK_MS)
    cluster.produce(topic, ["slow"])
    async with (
        open_consumer(bootstrap, group, topic) as consumer,
        open_consumer(bootstrap, group, topic) as other,
    ):
        (record,) = await take(consumer, 1)
        async with record:
            assert await other.poll(timeout=RENEWED_LOCK_MS / 1000 * 1.2) == []
        assert list((await consumer.commit()).values()) == [None]


async def test_an_expired_lock_hands_the_record_to_another_consumer(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(record_lock_duration_ms=LOCK_MS)
    cluster.produce(topic, numbered(3))
    options: dict[str, Any] = {"renew_locks": False, "prefetch_records": 0}
    async with (
        open_consumer(bootstrap, group, topic, **options) as slow,
        open_consumer(bootstrap, group, topic, **options) as other,
    ):
        late = await take(slow, 3)
        cluster.set_group(group, {"share.record.lock.duration.ms": str(NEVER_MS)})
        redelivered = await take(other, 3)
        assert {record.delivery_count for record in redelivered} == {2}
        for record in late:
            record.accept()
        (failure,) = (await slow.commit()).values()
        assert failure is not None
        assert failure.code is ErrorCode.invalid_record_state
        for record in redelivered:
            record.accept()
        assert list((await other.commit()).values()) == [None]


async def test_a_record_is_archived_after_its_last_delivery(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group(delivery_count_limit=3)
    cluster.produce(topic, ["poison"])
    async with open_consumer(bootstrap, group, topic) as consumer:
        for delivery_count in (1, 2, 3):
            (record,) = await take(consumer, 1)
            assert record.delivery_count == delivery_count
            record.release()
            await consumer.commit()
        assert await consumer.poll(timeout=1.0) == []


async def test_consumers_share_all_partitions_without_overlap(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(partition_count=3), cluster.group()
    cluster.produce(topic, numbered(600), sticky_partitioning_linger_ms=0, linger_ms=1)
    handled: list[str] = []

    async def handle(record: ShareRecord[bytes | None, bytes | None]) -> None:
        await asyncio.sleep(0.001)
        handled.append(
            (record.value or b"").decode()
        )  # last: records that a close interrupts are not handled

    consumers = [open_consumer(bootstrap, group, topic) for _ in range(3)]
    for consumer in consumers:
        await consumer.start()
    running = [asyncio.create_task(consumer.run(handle, concurrency=8)) for consumer in consumers]

    async def all_are_handled() -> bool:
        return len(handled) >= 600

    await eventually(all_are_handled)
    for consumer in consumers:
        await consumer.close()
    await asyncio.gather(*running)
    assert sorted(handled) == sorted(numbered(600))


async def test_a_member_that_leaves_hands_its_partitions_on(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(partition_count=2), cluster.group()
    async with open_consumer(bootstrap, group, topic) as staying:
        async with open_consumer(bootstrap, group, topic) as leaving:
            cluster.produce(topic, numbered(200), sticky_partitioning_linger_ms=0, linger_ms=1)
            taken = await take(leaving, 1)
            taken[0].accept()
        seen = {record.value for record in taken} | {record.value for record in await take(staying, 199)}
        assert len(seen) == 200


async def test_a_topic_may_be_created_later(bootstrap: str, cluster: Cluster) -> None:
    group = cluster.group()
    later = unique("later")
    async with open_consumer(bootstrap, group, later) as consumer:
        assert await consumer.poll(timeout=1.0) == []
        new = confluent_admin.NewTopic(later, num_partitions=1, replication_factor=1)
        cluster.admin.create_topics([new])[later].result()
        cluster.produce(later, ["first"])
        assert values(await take(consumer, 1)) == ["first"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_batches_are_unpacked(bootstrap: str, cluster: Cluster, codec: str) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(500), compression_type=codec)
    async with open_consumer(bootstrap, group, topic) as consumer:
        assert values(await take(consumer, 500)) == numbered(500)


async def test_record_limit_is_kept_to(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(20))
    options: dict[str, Any] = {"acquire_mode": "record_limit", "prefetch_records": 0}
    async with (
        open_consumer(bootstrap, group, topic, **options) as one,
        open_consumer(bootstrap, group, topic, **options) as other,
    ):
        assert values(await take(one, 3)) == numbered(20)[:3]
        assert values(await take(other, 4)) == numbered(20)[3:7]


async def test_close_keeps_accepted_records_and_releases_the_rest(bootstrap: str, cluster: Cluster) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(4))
    async with open_consumer(bootstrap, group, topic) as leaving:
        for record in (await take(leaving, 3))[:2]:
            record.accept()
    async with open_consumer(bootstrap, group, topic) as consumer:
        assert values(await take(consumer, 2)) == numbered(4)[2:]


async def test_a_stop_finishes_the_records_in_work_and_hands_the_rest_on(
    bootstrap: str, cluster: Cluster
) -> None:
    topic, group = cluster.topic(), cluster.group()
    cluster.produce(topic, numbered(20))
    handled: list[str] = []
    begun, may_finish = asyncio.Semaphore(0), asyncio.Event()

    async def handle(record: ShareRecord[bytes | None, bytes | None]) -> None:
        begun.release()
        await may_finish.wait()
        handled.extend(values([record]))

    async with open_consumer(bootstrap, group, topic) as stopping:
        running = asyncio.create_task(stopping.run(handle, concurrency=4))
        for _ in range(4):
            await begun.acquire()
        stopping.stop()
        async with open_consumer(bootstrap, group, topic) as other:
            rest = values(await take(other, 16))
        may_finish.set()
        await running
        assert list((await stopping.commit()).values()) == [None]
    assert sorted(handled + rest) == sorted(numbered(20))
    assert len(handled) == 4


@pytest.mark.barnabas
async def test_nothing_is_lost_and_nothing_accepted_comes_again_when_the_broker_is_killed(
    own_broker: BrokerProcess,
) -> None:
    cluster = Cluster(own_broker.address)
    topic, group = cluster.topic(), cluster.group(delivery_count_limit=10)
    cluster.produce(topic, numbered(3000), batch_num_messages=50)
    confirmed: set[int] = set()
    delivered: set[int] = set()
    again: list[int] = []

    def note(outcome: Outcome) -> None:
        if outcome.error is None:
            confirmed.update(outcome.offsets)

    async def handle(record: ShareRecord[bytes | None, bytes | None]) -> None:
        delivered.add(record.offset)
        if record.offset in confirmed:
            again.append(record.offset)
        await asyncio.sleep(0.001)

    async with open_consumer(own_broker.address, group, topic, on_outcome=note, max_records=100) as consumer:
        running = asyncio.create_task(consumer.run(handle, concurrency=4))
        for kill in range(1, KILLS + 1):

            async def enough(count: int = kill * 400) -> bool:
                return len(confirmed) >= count

            await eventually(enough)
            own_broker.kill()
            await asyncio.to_thread(own_broker.start)

        async def all_were_delivered() -> bool:
            return len(delivered) == 3000

        await eventually(all_were_delivered)
    await running
    assert again == []
