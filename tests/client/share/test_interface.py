"""The parts of the share consumer's interface that it has in common with the ordinary consumer."""

from __future__ import annotations

import asyncio
import logging

import pytest
from kio.schema.api_versions.v4.response import ApiVersion

from barnabas.client import (
    MisuseError,
    Outcome,
    ShareConsumer,
    TopicPartition,
    UnknownTopicError,
    UnsupportedBrokerError,
    WakeupError,
)
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.primitive import i16
from tests.client.virtual_world import GROUP, TOPIC, World, eventually, take, values, virtually

FIRST, SECOND = (TopicPartition(TOPIC, partition) for partition in range(2))


@virtually
async def test_unsubscribe_leaves_the_group_until_the_next_subscription(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(max_records=2) as consumer:
        (first,) = await take(consumer, 1)
        first.accept()
        assert consumer.subscription() == {TOPIC}
        await consumer.unsubscribe()
        assert consumer.subscription() == frozenset()
        with pytest.raises(MisuseError, match="subscribed to no topic"):
            await consumer.poll()
        await eventually(lambda: _has_members(world, 0))
        consumer.subscribe([TOPIC])
        assert values(await take(consumer, 2)) == ["b", "c"]


async def _has_members(world: World, count: int) -> bool:
    return len(await world.members(GROUP)) == count


@virtually
async def test_an_application_that_does_not_poll_in_time_hands_its_waiting_records_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(max_poll_interval_ms=10_000) as slow:
        (held,) = await take(slow, 1)
        with caplog.at_level(logging.WARNING, "barnabas.client"):
            await asyncio.sleep(11)
        assert [one.message for one in caplog.records if "has not polled for" in one.message]
        async with world.consumer() as other:
            assert values(await take(other, 2)) == ["b", "c"]
            held.accept()
            assert list((await slow.commit()).values()) == [None], "the record in work is still locked"
            await world.write(TOPIC, "d")
            for record in await take(other, 1):
                record.accept()
            assert await slow.poll(timeout=30) == []
            assert len(await world.members(GROUP)) == 2


@virtually
async def test_wakeup_ends_one_poll(world: World) -> None:
    await world.topic()
    await world.group()
    async with world.consumer() as consumer:
        polls = [asyncio.create_task(consumer.poll(timeout=60)) for _ in range(2)]
        await asyncio.sleep(5)
        consumer.wakeup()
        results = await asyncio.gather(*polls, return_exceptions=True)
        assert [type(one) for one in results].count(WakeupError) == 1
        assert [] in results


@virtually
async def test_a_callback_for_outcomes_may_only_wake_the_consumer_up(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    refused: list[str] = []

    def note(_: Outcome) -> None:
        for misuse in (consumer.metrics, second.accept, lambda: consumer.subscribe([TOPIC])):
            with pytest.raises(MisuseError, match="Inside on_outcome the only method"):
                misuse()
            refused.append("misuse")
        consumer.wakeup()

    consumer: ShareConsumer[bytes | None, bytes | None] = world.consumer(on_outcome=note)
    async with consumer:
        first, second = await take(consumer, 2)
        first.accept()
        with pytest.raises(WakeupError):
            await consumer.poll(timeout=10)
        assert len(refused) == 3


@virtually
async def test_a_group_tells_where_it_reads(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c", partition_count=2)
    await world.group()
    async with world.consumer() as consumer:
        for record in (await take(consumer, 3))[:2]:
            record.accept()
        await consumer.commit()
        assert await consumer.beginning_offsets([FIRST]) == {FIRST: 2}
        assert await consumer.end_offsets([FIRST]) == {FIRST: 3}
        assert await consumer.partitions_for(TOPIC) == [FIRST, TopicPartition(TOPIC, 1)]
        assert [topic.name for topic in await consumer.list_topics()] == [TOPIC]
        with pytest.raises(UnknownTopicError):
            await consumer.partitions_for("nowhere")
        metrics = consumer.metrics()
        assert (metrics["records-consumed-total"], metrics["records-held"]) == (3, 1)
        assert metrics["acknowledgements-send-total"] == 2


@virtually
async def test_a_group_ends_behind_the_records_that_it_has_acquired(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c", partition_count=2)
    await world.group()
    async with world.consumer(prefetch_records=0) as consumer:
        assert await consumer.end_offsets([FIRST, SECOND]) == {FIRST: -1, SECOND: -1}
        await take(consumer, 3)
        await world.write(TOPIC, "d", "e")
        assert await consumer.end_offsets([FIRST, SECOND]) == {FIRST: 3, SECOND: 0}
        last = (await take(consumer, 2))[-1]
        assert await consumer.end_offsets([FIRST]) == {FIRST: last.offset + 1}
        with pytest.raises(UnknownTopicError):
            await consumer.end_offsets([TopicPartition("nowhere", 0)])


@pytest.mark.parametrize("lost_after_ms", range(1, 7))
@virtually
async def test_a_request_for_a_groups_end_is_repeated_when_the_broker_is_back(
    world: World, lost_after_ms: int
) -> None:
    """The connection is lost while the topic is looked up, or while the leader answers."""
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(prefetch_records=0) as consumer:
        await take(consumer, 3)
        assert await consumer.end_offsets([FIRST]) == {FIRST: 3}
        asking = asyncio.create_task(consumer.end_offsets([FIRST]))
        await asyncio.sleep(lost_after_ms / 1000)
        assert not asking.done()
        world.kill()
        await world.start()
        assert await asking == {FIRST: 0}, "a first delivery is not recorded"


@virtually
async def test_a_group_has_no_end_in_a_partition_that_it_does_not_read(world: World) -> None:
    await world.topic()
    await world.topic("other", "a")
    await world.group()
    async with world.consumer() as consumer:
        await eventually(lambda: _has_members(world, 1))
        assert await consumer.end_offsets([TopicPartition("other", 0)]) == {TopicPartition("other", 0): -1}


@virtually
async def test_a_broker_that_does_not_describe_records_does_not_tell_a_groups_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tuple(
        ApiVersion(api_key=i16(api.key), min_version=i16(api.min_version), max_version=i16(api.max_version))
        for api in APIS.values()
        if api.key is not ApiKey.DESCRIBE_SHARE_RECORDS
    )
    monkeypatch.setattr("barnabas.broker.handlers.api_versions._FOR_CLIENTS", served)
    await world.topic()
    await world.group()
    async with world.consumer() as consumer:
        with pytest.raises(UnsupportedBrokerError):
            await consumer.end_offsets([FIRST])
