"""The consumer when things fail: a killed broker, lost connections, unreadable records."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest

from barnabas.client import AcknowledgeError, Outcome, ShareConsumer, ShareRecord, TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import HEADER_BYTES
from tests.client.virtual_world import (
    ADDRESS,
    GROUP,
    LOCK_MS,
    TOPIC,
    Consumer,
    World,
    eventually,
    take,
    values,
    virtually,
)

PARTITION = TopicPartition(TOPIC, 0)
RECORD_COUNT = 400


class Ledger:
    """The records that a consumer received, and the confirmed ones among them."""

    def __init__(self) -> None:
        self.delivered: list[int] = []
        self.confirmed: set[int] = set()
        self.delivered_again: list[int] = []

    def deliver(self, record: ShareRecord[Any, Any]) -> None:
        self.delivered.append(record.offset)
        if record.offset in self.confirmed:
            self.delivered_again.append(record.offset)

    def confirm(self, outcome: Outcome) -> None:
        if outcome.error is None:
            self.confirmed.update(outcome.offsets)


async def work_on(consumer: Consumer, ledger: Ledger) -> None:
    async for record in consumer:
        ledger.deliver(record)
        async with record:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("kills_the_broker", [True, False])
@virtually
async def test_nothing_is_lost_and_no_accepted_record_is_redelivered(
    world: World, kills_the_broker: bool
) -> None:
    await world.topic()
    await world.group(delivery_count_limit=10)
    for start in range(0, RECORD_COUNT, 20):
        await world.write(TOPIC, *map(str, range(start, start + 20)))
    ledger = Ledger()
    consumer = world.consumer(on_outcome=ledger.confirm, max_records=50)
    async with consumer:
        working = [asyncio.create_task(work_on(consumer, ledger)) for _ in range(4)]
        for _ in range(3):
            await asyncio.sleep(0.1)
            if kills_the_broker:
                world.kill()
                await asyncio.sleep(0.5)
                await world.start()
            else:
                world.cut_connections()
            await eventually(partial(_more_than, ledger, len(ledger.confirmed)))
        # A record is acknowledged even if the answer was lost and the consumer does not know.
        await eventually(lambda: _lag_is(world, 0))
    await asyncio.gather(*working)
    assert ledger.delivered_again == []
    assert set(ledger.delivered) == set(range(RECORD_COUNT))


@virtually
async def test_records_held_when_the_connection_is_lost_are_lost(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer() as consumer:
        kept, accepted = await take(consumer, 2)
        accepted.accept()
        world.cut_connections()
        await asyncio.sleep(0.01)
        assert not kept.is_held
        again = await take(consumer, 2)
        assert [record.delivery_count for record in again] == [2, 2]
        kept.accept()
        for record in again:
            record.accept()
        error = (await consumer.commit())[PARTITION]
        assert error is not None
        codes = [outcome.error.code for outcome in world.outcomes if outcome.error is not None]
        assert set(codes) == {ErrorCode.network_exception, ErrorCode.invalid_record_state}
    assert await world.lag() == 0


@virtually
async def test_a_silent_connection_is_replaced(world: World) -> None:
    await world.topic(TOPIC)
    await world.group()
    async with world.consumer(request_timeout_ms=2_000) as consumer:
        assert await consumer.poll(timeout=1) == []
        for link in world.network.links:
            link.fall_silent()
        await world.write(TOPIC, "a")
        assert values(await take(consumer, 1)) == ["a"]


@virtually
async def test_closing_without_a_broker_ends_in_time(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    consumer = world.consumer(close_timeout_ms=1_000)
    await consumer.start()
    await take(consumer, 1)
    world.kill()
    started = asyncio.get_running_loop().time()
    await consumer.close()
    assert asyncio.get_running_loop().time() - started <= 1.1


@virtually
async def test_a_member_unknown_to_the_broker_joins_again(world: World) -> None:
    await world.topic(TOPIC)
    await world.group()
    async with world.consumer() as consumer:
        await consumer.poll(timeout=5)
        async with world.consumer(member_id=consumer.member_id) as impostor:
            await impostor.poll(timeout=5)
        await asyncio.sleep(20)
        assert await world.members() == [consumer.member_id]
        await world.write(TOPIC, "a")
        assert values(await take(consumer, 1)) == ["a"]


@pytest.mark.parametrize(("unreadable", "lag"), [("reject", 0), ("release", 3)])
@pytest.mark.usefixtures("records_only_in_files")
@virtually
async def test_a_corrupt_batch_is_logged_in_one_line(
    world: World,
    caplog: pytest.LogCaptureFixture,
    unreadable: str,
    lag: int,
) -> None:
    await world.topic(TOPIC)
    await world.group(delivery_count_limit=10)
    await world.write(TOPIC, "bad", "bad", "bad")
    await world.write(TOPIC, "good")
    world.spoil(TOPIC, at=HEADER_BYTES)
    with caplog.at_level(logging.ERROR):
        async with world.consumer(unreadable=unreadable, max_wait_ms=60_000) as consumer:
            (record,) = await take(consumer, 1)
            assert record.value == b"good"
            record.accept()
            await consumer.commit()
    assert await world.lag() == lag
    lines = [line for line in caplog.messages if "cannot be read" in line]
    assert lines
    assert len(lines) <= 10


@virtually
async def test_a_record_that_the_deserializer_refuses_is_rejected(world: World) -> None:
    await world.topic(TOPIC, "1", "one", "2")
    await world.group()
    consumer = ShareConsumer(ADDRESS, group=GROUP, topics=[TOPIC], value_deserializer=_number)
    async with consumer:
        assert [record.value for record in await consumer.poll()] == [1, 2]
        await eventually(lambda: _lag_is(world, 2))


@virtually
async def test_every_acknowledgement_has_an_outcome(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer() as consumer:
        for record in await take(consumer, 3):
            record.accept()
            await asyncio.sleep(1)
    assert sorted(offset for outcome in world.outcomes for offset in outcome.offsets) == [0, 1, 2]
    assert {(one.topic, one.partition, one.error) for one in world.outcomes} == {(TOPIC, 0, None)}


@virtually
async def test_a_failing_on_outcome_ends_the_consumer_but_no_acknowledgement(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()

    def fail(_: Outcome) -> None:
        raise ZeroDivisionError

    async with world.consumer(on_outcome=fail) as consumer:
        accepted, held = await take(consumer, 2)
        accepted.accept()
        async with asyncio.timeout(60):
            assert await consumer.commit() == {PARTITION: None}
        with pytest.raises(ZeroDivisionError):
            await consumer.poll()
        held.accept()
        assert await consumer.commit() == {PARTITION: None}
    assert await world.lag() == 0


@pytest.mark.parametrize("way", ["accept", "release", "reject", "async with"])
@virtually
async def test_an_acknowledgement_after_the_close_is_reported_as_too_late(world: World, way: str) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        await record.__aenter__()
    assert world.outcomes == []
    if way == "async with":
        await record.__aexit__(None, None, None)
    else:
        getattr(record, way)()
    (outcome,) = world.outcomes
    assert list(outcome.offsets) == [0]
    assert outcome.error is not None
    assert outcome.error.message == "The consumer was closed, which released the record."
    with pytest.raises(AcknowledgeError, match="The consumer was closed"):
        await record.renew()
    async with world.consumer() as other:
        assert [again.delivery_count for again in await take(other, 1)] == [2]


@virtually
async def test_a_block_whose_lock_has_ended_has_an_error_outcome(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        async with record:
            world.cut_connections()
            await asyncio.sleep(0.01)
        (error,) = (await consumer.commit()).values()
        assert error is not None
        assert error.message == "The lock had ended."


@virtually
async def test_a_single_acknowledgement_is_sent_soon(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(max_wait_ms=60_000, acknowledge_within_ms=50) as consumer:
        first, _ = await take(consumer, 2)
        await asyncio.sleep(1)
        first.accept()
        await asyncio.sleep(0.2)
        assert await world.lag(TOPIC, GROUP) == 1


def _number(data: bytes | None) -> int:
    return int(data or b"")


async def _more_than(ledger: Ledger, count: int) -> bool:
    return len(ledger.confirmed) > count or len(ledger.confirmed) == RECORD_COUNT


async def _lag_is(world: World, lag: int) -> bool:
    return await world.lag() == lag
