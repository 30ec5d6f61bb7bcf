"""Groups that deliver several records of one key together (`share.order.key.in.flight.max`): when a record is
released, the broker takes back the later ones of its key, and the consumer gives none of them to its reader.
"""

from __future__ import annotations

from collections.abc import Sequence

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
