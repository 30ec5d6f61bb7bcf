"""Groups that deliver several records of one key together (`share.order.key.in.flight.max`): when a record is
released, the broker takes back the later ones of its key, and the consumer gives none of them to its reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.client.virtual_world import TOPIC, Consumer, World, take, values, virtually

RUN = 20


async def keyed(world: World, *written: str) -> None:
    """A topic with these values; the first letter of each is its key."""
    await world.topic()
    now_ms = world.clock.wall_ms()
    records = [
        Record(number, now_ms, value[:1].encode(), value.encode()) for number, value in enumerate(written)
    ]
    await world.append(TOPIC, encode_records(records))


async def accepted(consumer: Consumer, count: int) -> list[str]:
    """The next records with their delivery counts; each is accepted before the next is polled."""
    seen: list[str] = []
    for _ in range(count):
        (record,) = await take(consumer, 1)
        assert record.is_held
        seen.append(f"{values([record])[0]} {record.delivery_count}")
        record.accept()
    await consumer.commit()
    return seen


def refused(world: World) -> list[tuple[Sequence[int], object]]:
    return [(outcome.offsets, outcome.error) for outcome in world.outcomes if outcome.error is not None]


@virtually
async def test_no_record_behind_a_released_one_of_its_key_is_handed_out(world: World) -> None:
    await keyed(world, "a0", "a1", "b0", "a2", "b1")
    await world.group(order="key", order_key_in_flight_max=RUN)
    async with world.consumer() as consumer:
        (first,) = await take(consumer, 1)
        first.release()
        assert await accepted(consumer, 5) == ["b0 1", "b1 1", "a0 2", "a1 1", "a2 1"]
    assert refused(world) == []
    assert await world.lag() == 0


@virtually
async def test_a_record_in_the_hands_of_the_reader_is_not_held_any_more(world: World) -> None:
    """Its acknowledgement has no effect, and the outcome says why."""
    await keyed(world, "a0", "a1", "b0")
    await world.group(order="key", order_key_in_flight_max=RUN)
    async with world.consumer() as consumer:
        first, second, other = await take(consumer, 3)
        first.release()
        assert (second.is_held, other.is_held) == (False, True)
        second.accept()
        other.accept()
        assert await accepted(consumer, 2) == ["a0 2", "a1 1"]
    ((offsets, error),) = refused(world)
    assert offsets == [1]
    assert "An earlier record of its key is delivered again" in str(error)
    assert await world.lag() == 0


@virtually
async def test_an_acceptance_in_the_request_that_releases_an_earlier_record_has_failed(world: World) -> None:
    """The broker counts the record as released. The reader must not believe that it is done."""
    await keyed(world, "a0", "a1", "a2", "b0")
    await world.group(order="key", order_key_in_flight_max=RUN)
    async with world.consumer() as consumer:
        first, second, third, other = await take(consumer, 4)
        third.release()
        second.accept()
        other.accept()
        first.release()
        assert await accepted(consumer, 3) == ["a0 2", "a1 1", "a2 1"]
    ((offsets, error),) = refused(world)
    assert offsets == [1]
    assert "An earlier record of its key is delivered again" in str(error)
    assert await world.lag() == 0


@virtually
async def test_the_others_of_a_run_stay_held_if_the_released_one_was_delivered_for_the_last_time(
    world: World,
) -> None:
    await keyed(world, "a0", "a1", "a2")
    await world.group(order="key", order_key_in_flight_max=RUN, delivery_count_limit=2)
    async with world.consumer() as consumer:
        for delivery_count in (1, 2):
            (first, second) = await take(consumer, 2)
            assert (values([first]), first.delivery_count) == (["a0"], delivery_count)
            first.release()
        assert second.is_held
        second.accept()
        assert await accepted(consumer, 1) == ["a2 1"]
    assert refused(world) == []
    assert await world.lag() == 0


@virtually
async def test_a_lock_that_ends_takes_the_later_records_of_its_run_along(world: World) -> None:
    await keyed(world, "a0", "a1")
    await world.group(order="key", order_key_in_flight_max=RUN)
    async with world.consumer(renew_locks=False, prefetch_records=0) as consumer:
        first, second = await take(consumer, 2)
        await asyncio.sleep(20)
        await second.renew()
        await asyncio.sleep(15)
        assert (first.is_held, second.is_held) == (False, False)
        assert await accepted(consumer, 2) == ["a0 2", "a1 1"]
    assert refused(world) == []


@virtually
async def test_a_record_behind_an_unreadable_one_waits_for_it(world: World) -> None:
    await keyed(world, "a0", "a1", "b0")
    await world.group(order="key", order_key_in_flight_max=RUN)
    fails = {b"a0"}

    def read(value: bytes | None) -> bytes | None:
        if value in fails:
            fails.remove(value)
            raise ValueError(value)
        return value

    async with world.consumer(unreadable="release", value_deserializer=read) as consumer:
        assert await accepted(consumer, 3) == ["b0 1", "a0 2", "a1 1"]
    assert refused(world) == []


@virtually
async def test_all_records_behind_a_released_one_wait_in_a_batch_that_is_delivered_alone(
    world: World,
) -> None:
    """A batch of more than 4 MiB is not searched for keys."""
    await world.topic()
    records = [Record(number, world.clock.wall_ms(), b"%d" % number, bytes(1 << 20)) for number in range(5)]
    await world.append(TOPIC, encode_records(records, compression=Compression.ZSTD))
    await world.group(order="key")
    async with world.consumer() as consumer:
        (first,) = await take(consumer, 1)
        first.release()
        seen = await take(consumer, 5)
        assert [(record.offset, record.delivery_count) for record in seen] == [
            (0, 2),
            *((offset, 1) for offset in range(1, 5)),
        ]
        for record in seen:
            record.accept()
    assert refused(world) == []
    assert await world.lag() == 0


@virtually
async def test_in_a_group_without_an_order_the_other_records_of_the_key_stay_held(world: World) -> None:
    await keyed(world, "a0", "a1", "a2")
    await world.group()
    async with world.consumer() as consumer:
        (first,) = await take(consumer, 1)
        first.release()
        assert await accepted(consumer, 3) == ["a1 1", "a2 1", "a0 2"]
    assert refused(world) == []
