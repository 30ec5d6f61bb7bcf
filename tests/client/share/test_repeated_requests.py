"""A share consumer whose connection is lost before an answer repeats the request (decision 26)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client import AcknowledgeError, ShareRecord, TopicPartition
from barnabas.protocol.errors import ErrorCode
from tests.client.virtual_world import TOPIC, World, take, values, virtually
from tests.simulation.simulated_network import Link

PARTITION = TopicPartition(TOPIC, 0)
A_MOMENT_S = 0.5
"""More than the time in which a request arrives."""


def links(world: World) -> Iterator[Link]:
    yield from list(world.network.links)


def lose_answers(world: World) -> None:
    """The broker's bytes do not arrive any more; it does not notice that."""
    for link in links(world):
        link.server.out.is_silent = True


def lose_requests(world: World) -> None:
    for link in links(world):
        link.client.out.is_silent = True


def codes(world: World) -> list[ErrorCode]:
    return [ErrorCode.none if one.error is None else one.error.code for one in world.outcomes]


@virtually
async def test_a_lost_answer_to_an_acknowledgement_is_given_again(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer() as consumer:
        accepted, kept = await take(consumer, 2)
        lose_answers(world)
        accepted.accept()
        await asyncio.sleep(A_MOMENT_S)
        assert await world.lag() == 1, "the broker has carried it out"
        world.cut_connections()
        assert await consumer.commit() == {PARTITION: None}
        assert not kept.is_held, "locks end with the connection"
        (again,) = await take(consumer, 1)
        assert (again.value, again.delivery_count) == (b"b", 2)
        again.accept()
    assert codes(world) == [ErrorCode.none, ErrorCode.none]
    assert await world.lag() == 0


@virtually
async def test_a_request_that_never_arrived_has_failed(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        lose_requests(world)
        record.accept()
        await asyncio.sleep(A_MOMENT_S)
        world.cut_connections()
        error = (await consumer.commit())[PARTITION]
        assert error is not None
        assert error.code is ErrorCode.network_exception
        (again,) = await take(consumer, 1)
        assert again.delivery_count == 2


@pytest.mark.parametrize("verdict", ["release", "reject"])
@virtually
async def test_a_repeated_release_or_rejection_has_one_effect(world: World, verdict: str) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        lose_answers(world)
        getattr(record, verdict)()
        await asyncio.sleep(A_MOMENT_S)
        world.cut_connections()
        assert await consumer.commit() == {PARTITION: None}
        again = [(one.value, one.delivery_count) for one in await consumer.poll(timeout=5)]
        # A fetch behind the release acquired the record, and lost it with the connection.
        assert again in ([(b"a", 2)], [(b"a", 3)]) if verdict == "release" else again == []


@virtually
async def test_records_of_an_answer_that_a_silent_connection_lost_arrive_again(world: World) -> None:
    """The broker does not notice the loss, so the session lives, and with it the locks."""
    await world.topic(TOPIC)
    await world.group()
    async with world.consumer(request_timeout_ms=2_000) as consumer:
        assert await consumer.poll(timeout=2) == []
        for link in links(world):
            link.fall_silent()
        await world.write(TOPIC, "a", "b")
        records = await take(consumer, 2, within_seconds=10)
        assert values(records) == ["a", "b"]
        assert [one.delivery_count for one in records] == [1, 1]
        for record in records:
            record.accept()
        assert await consumer.commit() == {PARTITION: None}
    assert await world.lag() == 0


@virtually
async def test_both_outstanding_requests_are_repeated(world: World) -> None:
    """A fetch that carries acknowledgements waits for records; others follow in a request of their own."""
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(max_wait_ms=60_000) as consumer:
        records = await take(consumer, 3)
        lose_answers(world)
        for record in records[:2]:
            record.accept()
            polling = asyncio.create_task(consumer.poll(timeout=A_MOMENT_S))
            await polling
        assert await world.lag() == 1
        world.cut_connections()
        assert await consumer.commit() == {PARTITION: None}
    assert [one.error for one in world.outcomes if one.offsets != [2]] == [None] * len(world.outcomes)


@virtually
async def test_without_a_broker_acknowledgements_fail_after_the_timeout_of_a_request(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer(request_timeout_ms=3_000, close_timeout_ms=100) as consumer:
        (record,) = await take(consumer, 1)
        lose_answers(world)
        record.accept()
        await asyncio.sleep(A_MOMENT_S)
        world.cut_connections()
        world.kill()
        started = asyncio.get_running_loop().time()
        error = (await consumer.commit())[PARTITION]
        assert error is not None
        assert error.code is ErrorCode.network_exception
        assert 2.5 < asyncio.get_running_loop().time() - started < 5


@virtually
async def test_a_restarted_broker_has_no_answer(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        lose_answers(world)
        record.accept()
        await asyncio.sleep(A_MOMENT_S)
        world.kill()
        await world.start()
        error = (await consumer.commit())[PARTITION]
        assert error is not None
        assert error.code is ErrorCode.network_exception
    assert await world.lag() == 0


@virtually
async def test_a_renewal_is_not_repeated_because_the_lock_has_ended(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        lose_answers(world)
        renewing = asyncio.create_task(_renewal_error(record))
        await asyncio.sleep(A_MOMENT_S)
        world.cut_connections()
        assert await renewing is ErrorCode.network_exception
        (again,) = await take(consumer, 1)
        assert again.delivery_count == 2


@virtually
async def test_a_consumer_that_closes_repeats_nothing(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    consumer = world.consumer()
    await consumer.start()
    (record,) = await take(consumer, 1)
    lose_answers(world)
    record.accept()
    await asyncio.sleep(A_MOMENT_S)
    world.cut_connections()
    await consumer.close()
    assert codes(world) == [ErrorCode.network_exception]
    assert await world.lag() == 0


async def _renewal_error(record: ShareRecord[bytes | None, bytes | None]) -> ErrorCode | None:
    try:
        await record.renew()
    except AcknowledgeError as error:
        return ErrorCode(error.code)
    return None
