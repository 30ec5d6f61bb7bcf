"""Delays before retries as a consumer of this project sees them, and the delays that it asks for."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from barnabas.client import MisuseError, UnsupportedBrokerError
from barnabas.client.share.acknowledgements import Acknowledgement, AcknowledgeType, release_delays
from barnabas.coordinator.metadata.features import EXTENSIONS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended import RELEASE_DELAY
from barnabas.protocol.extended.release_delays import ReleaseDelay
from tests.client.virtual_world import LOCK_MS, TOPIC, World, take, virtually


def seconds_now() -> float:
    return asyncio.get_running_loop().time()


@virtually
async def test_a_consumer_asks_for_the_delay_of_a_record(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer() as consumer:
        late, early = await take(consumer, 2)
        released_at = seconds_now()
        late.release(delay=timedelta(seconds=40))
        early.release(delay=timedelta())
        (again,) = await take(consumer, 1)
        assert (again.value, seconds_now() - released_at < 1) == (b"b", True)
        again.accept()
        (again,) = await take(consumer, 1)
        assert (again.value, again.delivery_count) == (b"a", 2)
        assert 40 <= seconds_now() - released_at < 41
        again.accept()
    assert await world.lag() == 0


@virtually
async def test_without_a_delay_of_its_own_a_record_waits_by_the_settings_of_the_group(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(retry_backoff_ms=10_000, retry_backoff_jitter=0)
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        released_at = seconds_now()
        with pytest.raises(ZeroDivisionError):
            async with record:
                raise ZeroDivisionError
        (again,) = await take(consumer, 1)
        assert 10 <= seconds_now() - released_at < 11
        again.accept()


@virtually
async def test_a_consumer_that_closes_gives_its_records_back_at_once(world: World) -> None:
    """One record is held by the application, the others wait in the client."""
    await world.topic(TOPIC, "a", "b", "c")
    await world.group(retry_backoff_ms=50_000)
    async with world.consumer() as consumer:
        await take(consumer, 1)
    closed_at = seconds_now()
    async with world.consumer() as other:
        records = await take(other, 3)
        assert seconds_now() - closed_at < 5
        for record in records:
            record.accept()


@virtually
async def test_a_consumer_that_unsubscribes_gives_unread_records_back_at_once(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group(retry_backoff_ms=50_000)
    async with world.consumer() as consumer, world.consumer() as other:
        (first,) = await take(consumer, 1)
        first.accept()
        await consumer.unsubscribe()
        left_at = seconds_now()
        (record,) = await take(other, 1)
        assert (record.value, seconds_now() - left_at < 10) == (b"b", True)
        record.accept()


@virtually
async def test_a_delay_beyond_the_bound_of_the_group_fails_alone(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group(retry_backoff_max_ms=5_000)
    async with world.consumer(renew_locks=False) as consumer:
        first, second, third = await take(consumer, 3)
        first.accept()
        second.release(delay=timedelta(seconds=6))
        third.accept()
        (error,) = (await consumer.commit()).values()
        assert error is not None
        assert (error.code, list(error.offsets)) == (ErrorCode.invalid_request, [1])
        assert "raise share.retry.backoff.max.ms" in str(error)
        await asyncio.sleep(LOCK_MS / 1000)
        (again,) = await take(consumer, 1)
        assert (again.offset, again.delivery_count) == (1, 2)
        again.accept()
    assert await world.lag() == 0


@virtually
async def test_an_impossible_delay_is_misuse_and_the_record_is_still_held(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        for delay in (timedelta(seconds=-1), timedelta(days=1, milliseconds=1)):
            with pytest.raises(MisuseError, match="must be from 0 to 1 day"):
                record.release(delay=delay)
        assert record.is_held
        record.accept()


@virtually
async def test_a_broker_without_the_feature_is_asked_for_no_delay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {name: levels for name, levels in EXTENSIONS.items() if name != RELEASE_DELAY}
    monkeypatch.setattr("barnabas.broker.handlers.api_versions.EXTENSIONS", others)
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer() as consumer:
        record, other = await take(consumer, 2)
        with pytest.raises(UnsupportedBrokerError, match=r"the feature release\.delay"):
            record.release(delay=timedelta(seconds=1))
        assert record.is_held
        record.release(delay=timedelta())
        other.accept()
        (again,) = await take(consumer, 1)
        again.accept()
    assert await world.lag() == 0


def test_neighbours_with_one_delay_are_one_range() -> None:
    delays = {1: 5, 2: 5, 3: 0, 4: None, 5: 5, 7: 5}
    acknowledgements = {
        offset: Acknowledgement(AcknowledgeType.RELEASE, None, delay_ms)
        for offset, delay_ms in delays.items()
    }
    assert release_delays(acknowledgements) == (
        ReleaseDelay(1, 2, 5),
        ReleaseDelay(3, 3, 0),
        ReleaseDelay(5, 5, 5),
        ReleaseDelay(7, 7, 5),
    )
