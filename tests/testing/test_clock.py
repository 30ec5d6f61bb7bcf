"""An advance of the clock: everything that becomes due is done when it returns."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.client import Consumer, Producer, RebalanceListener, TopicPartition
from barnabas.testing import Broker, ControlError
from tests.testing.conftest import GROUP, TOPIC
from tests.testing.working import consumer_of, produce, take


async def test_a_lock_expires(broker: Broker) -> None:
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        await take(consumer)
        broker.clock.advance(1)
        assert [one.state for one in broker.share_state(GROUP)] == ["acquired"]
        broker.clock.advance(31)
        assert [(one.state, one.deliveries) for one in broker.share_state(GROUP)] == [("available", 1)]


async def test_a_record_is_archived_after_its_last_delivery(broker: Broker) -> None:
    broker.configure_group(GROUP, {"share.delivery.count.limit": "2"})
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        for delivery in (1, 2):
            assert (await take(consumer)).delivery_count == delivery
            broker.clock.advance(31)
        broker.assert_share_state(GROUP, {0: "passed"}, topic=TOPIC, within_seconds=0)


async def test_a_delayed_retry_becomes_due(broker: Broker) -> None:
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        (await take(consumer)).release(delay=timedelta(seconds=45))
        await consumer.commit()
        assert broker.share_state(GROUP)[0].wait == "due"
        broker.clock.advance(46)
        assert (await take(consumer)).delivery_count == 2


async def test_a_transaction_times_out(broker: Broker) -> None:
    producer = Producer(broker.bootstrap_servers, transactional_id="t", transaction_timeout_ms=600_000)
    await producer.start()
    await producer.init_transactions()
    producer.begin_transaction()
    await producer.send_and_wait(TOPIC, b"open")
    await produce(broker, b"after")
    broker.assert_records(TOPIC, [])
    broker.clock.advance(700)
    broker.assert_records(TOPIC, ["after"], within_seconds=0)
    await producer.close(timeout_ms=100)


async def test_old_records_are_removed(broker: Broker) -> None:
    broker.create_topic("short", settings={"retention.ms": "60000", "segment.ms": "30000"})
    await produce(broker, b"old", topic="short")
    broker.clock.advance(900)
    broker.assert_records("short", [], within_seconds=0)


async def test_connected_members_stay_over_an_hour(broker: Broker) -> None:
    await produce(broker, b"a")
    async with consumer_of(broker) as consumer:
        await take(consumer)
        broker.clock.advance(3600)
        record = await take(consumer)
        assert record.delivery_count == 2
        record.accept()
        assert not any((await consumer.commit()).values())


class Losses(RebalanceListener):
    """Counts the times at which a consumer was removed from its group."""

    def __init__(self) -> None:
        self.count = 0

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.count += 1


@pytest.mark.parametrize(("sessions", "losses"), [(False, 0), (True, 1)])
async def test_sessions_end_on_request_only(broker: Broker, sessions: bool, losses: int) -> None:
    await produce(broker, b"a")
    lost = Losses()
    consumer = Consumer(
        broker.bootstrap_servers,
        group="readers",
        topics=[TOPIC],
        auto_offset_reset="earliest",
        listener=lost,
        enable_auto_commit=False,
    )
    async with consumer:
        assert len(await consumer.poll()) == 1
        broker.clock.advance(3600, sessions=sessions)
        await produce(broker, b"b")
        while not any(one.value == b"b" for one in await consumer.poll(timeout=1)):
            pass
        if sessions:
            while not lost.count:
                await consumer.poll(timeout=1)
        assert lost.count == losses


async def test_timestamps_follow_the_clock(broker: Broker) -> None:
    broker.create_topic("stamped", settings={"message.timestamp.type": "LogAppendTime"})
    await produce(broker, b"a", topic="stamped")
    broker.clock.advance(1000)
    await produce(broker, b"b", topic="stamped")
    first, second = (one.timestamp_ms for one in broker.records("stamped"))
    assert second - first >= 1_000_000


def test_the_clock_never_goes_back_over_restarts(tmp_path: Path) -> None:
    with Broker(directory=tmp_path / "data") as broker:
        broker.clock.advance(10_000)
        reached = broker.clock.now()
        broker.restart()
        assert broker.clock.now() >= reached
        broker.clock.advance(5)
        reached = broker.clock.now()
        broker.restart(crash=True)
        assert broker.clock.now() >= reached


@pytest.mark.parametrize("seconds", [-1, 367 * 24 * 3600])
def test_the_clock_goes_forward_and_not_too_far(broker: Broker, seconds: float) -> None:
    with pytest.raises(ControlError, match="it must be a whole number from 0"):
        broker.clock.advance(seconds)
