"""The consumer against a real broker in one process: its records, and the state of the group."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from barnabas.client import (
    AcknowledgeError,
    BrokerUnavailableError,
    ConsumerClosedError,
    MisuseError,
    ShareConsumer,
    TopicPartition,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.records import Record, encode_records
from tests.client.virtual_world import (
    ADDRESS,
    GROUP,
    LOCK_MS,
    TOPIC,
    World,
    eventually,
    take,
    values,
    virtually,
)

PARTITION = TopicPartition(TOPIC, 0)


class Spoiled(Exception):  # noqa: N818
    """A record that can never be processed."""


@virtually
async def test_each_record_is_accepted_by_its_block(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    seen: list[bytes | None] = []
    async with world.consumer() as consumer:
        async for record in consumer:
            async with record:
                seen.append(record.value)
            if len(seen) == 3:
                break
        assert await consumer.commit() == {PARTITION: None}
    assert seen == [b"a", b"b", b"c"]
    assert await world.lag() == 0


@virtually
async def test_a_record_has_all_fields_of_its_producer(world: World) -> None:
    await world.topic()
    await world.group()
    headers = (("trace", b"1"), ("trace", None))
    written = Record(0, 1_700_000_000_123, b"key", b"value", headers)
    await world.append(TOPIC, encode_records([written]))
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        assert (record.topic, record.partition, record.offset) == (TOPIC, 0, 0)
        assert (record.key, record.value, record.headers) == (b"key", b"value", headers)
        assert (record.timestamp_ms, record.delivery_count) == (1_700_000_000_123, 1)


@virtually
async def test_deserializers_make_keys_and_values(world: World) -> None:
    await world.topic(TOPIC, '{"number": 7}')
    await world.group()

    def from_json(data: bytes | None) -> Any:
        return json.loads(data or b"null")

    consumer = ShareConsumer(ADDRESS, group=GROUP, topics=[TOPIC], value_deserializer=from_json)
    async with consumer:
        (record,) = await consumer.poll()
        assert record.value == {"number": 7}
        assert record.key is None


@virtually
async def test_an_exception_releases_the_record_for_redelivery(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        with pytest.raises(ZeroDivisionError):
            async with record:
                raise ZeroDivisionError
        (again,) = await take(consumer, 1)
        assert (again.value, again.delivery_count) == (b"a", 2)
        again.accept()
    assert await world.lag() == 0


@virtually
async def test_named_exceptions_reject_the_record_for_good(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer(reject_on=(Spoiled,)) as consumer:
        (record,) = await take(consumer, 1)
        with pytest.raises(Spoiled):
            async with record:
                raise Spoiled
        await consumer.commit()
        assert await world.lag() == 0
        assert await consumer.poll(timeout=60) == []


@virtually
async def test_a_block_does_not_acknowledge_twice(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        async with record:
            record.release()
        (again,) = await take(consumer, 1)
        assert again.delivery_count == 2


@virtually
async def test_a_record_released_too_often_is_archived(world: World) -> None:
    await world.topic(TOPIC, "poison")
    await world.group(delivery_count_limit=3)
    async with world.consumer() as consumer:
        for delivery_count in (1, 2, 3):
            (record,) = await take(consumer, 1)
            assert record.delivery_count == delivery_count
            record.release()
        await consumer.commit()
        assert await consumer.poll(timeout=60) == []
    assert await world.lag() == 0


@virtually
async def test_a_record_is_acknowledged_once(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with world.consumer() as consumer:
        (record,) = await take(consumer, 1)
        record.accept()
        assert not record.is_held
        for settle in (record.accept, record.release, record.reject):
            with pytest.raises(MisuseError):
                settle()
        with pytest.raises(MisuseError):
            await record.renew()


@virtually
async def test_implicit_mode_accepts_records_with_the_next_poll(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    await world.group()
    async with world.consumer(acknowledgement_mode="implicit") as consumer:
        (record, _) = await take(consumer, 2)
        with pytest.raises(MisuseError):
            record.accept()
        with pytest.raises(MisuseError):
            await record.__aenter__()
        assert values(await take(consumer, 1)) == ["c"]
        await eventually(lambda: _lag_is(world, 1))
        assert await consumer.commit() == {PARTITION: None}
        assert await world.lag() == 0


@virtually
async def test_implicit_mode_releases_the_last_poll_on_close(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer(acknowledgement_mode="implicit") as consumer:
        await take(consumer, 2)
    async with world.consumer() as other:
        assert [record.delivery_count for record in await take(other, 2)] == [2, 2]


@virtually
async def test_implicit_iteration_accepts_each_record_with_the_next(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group()
    async with world.consumer(acknowledgement_mode="implicit") as consumer:
        records = aiter(consumer)
        await anext(records)
        await anext(records)
        await eventually(lambda: _lag_is(world, 1))


@virtually
async def test_locks_are_renewed_while_a_record_is_worked_on(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer() as consumer, world.consumer() as other:
        async for record in consumer:
            async with record:
                assert await other.poll(timeout=LOCK_MS / 1000 * 5) == []
            break
        assert await consumer.commit() == {PARTITION: None}
    assert await world.lag() == 1


@virtually
async def test_a_record_that_is_held_for_too_long_is_not_renewed_any_more(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(hold_ms_max=3 * LOCK_MS) as consumer:
        (record,) = await take(consumer, 1)
        started = asyncio.get_running_loop().time()
        (again,) = await take(consumer, 1)
        assert 3 < (asyncio.get_running_loop().time() - started) * 1000 / LOCK_MS < 5
        assert (record.is_held, again.delivery_count) == (False, 2)


@virtually
async def test_without_renewal_a_lock_ends_and_the_outcome_has_the_error(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(renew_locks=False, prefetch_records=0) as slow, world.consumer() as other:
        first, second = await take(slow, 2)
        again = await take(other, 2)
        assert [record.delivery_count for record in again] == [2, 2]
        first.accept()
        second.accept()
        error = (await slow.commit())[PARTITION]
        assert error is not None
        assert error.code is ErrorCode.invalid_record_state
        for record in again:
            record.accept()
        assert await other.commit() == {PARTITION: None}
    assert await world.lag() == 0


@virtually
async def test_records_are_not_fetched_repeatedly_without_a_reader(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(renew_locks=False) as consumer:
        await take(consumer, 1)
        await asyncio.sleep(LOCK_MS / 1000 * 20)
        assert max(record.delivery_count for record in await take(consumer, 2)) <= 3
    assert await world.lag() == 2


@virtually
async def test_a_reader_can_renew_a_lock(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(renew_locks=False) as consumer, world.consumer() as other:
        (record,) = await take(consumer, 1)
        for _ in range(5):
            assert await other.poll(timeout=LOCK_MS / 1000 * 0.8) == []
            await record.renew()
        record.accept()
        assert await consumer.commit() == {PARTITION: None}


@virtually
async def test_renewing_a_lost_record_raises(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with world.consumer(renew_locks=False) as consumer:
        (record,) = await take(consumer, 1)
        await asyncio.sleep(LOCK_MS / 1000 * 1.5)
        with pytest.raises(AcknowledgeError):
            await record.renew()


@virtually
async def test_a_group_with_renewal_switched_off_gets_few_renewals(world: World) -> None:
    await world.topic(TOPIC, *map(str, range(50)))
    await world.group(renew_acknowledge_enable=False, record_lock_duration_ms=LOCK_MS)
    async with world.consumer() as consumer:
        records = await take(consumer, 50)
        await asyncio.sleep(LOCK_MS / 1000 * 0.9)
        assert all(record.is_held for record in records)
        for record in records:
            record.accept()
        assert await consumer.commit() == {PARTITION: None}


@virtually
async def test_closing_keeps_accepted_records_and_releases_the_rest(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c", "d")
    await world.group()
    async with world.consumer() as consumer:
        for record in (await take(consumer, 3))[:2]:
            record.accept()
    async with world.consumer() as other:
        assert [(record.value, record.delivery_count) for record in await take(other, 2)] == [
            (b"c", 2),
            (b"d", 2),
        ]
    assert await world.members() == []


@virtually
async def test_a_closed_consumer_raises(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    consumer = world.consumer()
    with pytest.raises(MisuseError):
        await consumer.poll()
    await consumer.start()
    with pytest.raises(MisuseError):
        await consumer.start()
    (record,) = await take(consumer, 1)
    await consumer.close()
    await consumer.close()
    assert not record.is_held
    with pytest.raises(ConsumerClosedError):
        await consumer.poll()
    with pytest.raises(ConsumerClosedError):
        await consumer.commit()


@virtually
async def test_closing_ends_waiting_iterations_and_polls(world: World) -> None:
    await world.topic()
    await world.group()
    async with world.consumer() as consumer:

        async def read() -> int:
            return len([record async for record in consumer])

        async def read_batches() -> int:
            return len([records async for records in consumer.batches()])

        reading = [asyncio.create_task(one()) for one in (read, read_batches)]
        polling = asyncio.create_task(consumer.poll())
        await asyncio.sleep(1)
    assert await asyncio.gather(*reading) == [0, 0]
    with pytest.raises(ConsumerClosedError):
        await polling


@virtually
async def test_an_address_without_a_listener_times_out(world: World) -> None:
    started = asyncio.get_running_loop().time()
    with pytest.raises(BrokerUnavailableError):
        await ShareConsumer("broker:1", group=GROUP, topics=[TOPIC]).start()
    assert 5 < asyncio.get_running_loop().time() - started < 10.1


@virtually
async def test_one_address_of_several_is_enough(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group()
    async with ShareConsumer(["broker:1", ADDRESS], group=GROUP, topics=[TOPIC]) as consumer:
        assert values(await take(consumer, 1)) == ["a"]


@pytest.mark.parametrize("codec", Compression)
@virtually
async def test_batches_are_decompressed(world: World, codec: Compression) -> None:
    await world.topic()
    await world.group()
    written = [f"{number}" * 50 for number in range(30)]
    await world.write(TOPIC, *written, compression=codec)
    async with world.consumer() as consumer:
        assert values(await take(consumer, 30)) == written


@virtually
async def test_record_limit_acquires_no_more_than_requested(world: World) -> None:
    await world.topic(TOPIC, *map(str, range(10)))
    await world.group()
    options: dict[str, Any] = {"acquire_mode": "record_limit", "prefetch_records": 0}
    async with world.consumer(**options) as one, world.consumer(**options) as other:
        assert values(await take(one, 3)) == ["0", "1", "2"]
        assert values(await take(other, 2)) == ["3", "4"]
        assert values(await take(one, 5)) == ["5", "6", "7", "8", "9"]


@virtually
async def test_little_is_fetched_ahead(world: World) -> None:
    await world.topic()
    await world.group()
    for number in range(100):
        await world.write(TOPIC, str(number))
    async with world.consumer(max_records=10, prefetch_records=5) as one:
        assert await take(one, 1)
        await asyncio.sleep(5)
        async with world.consumer() as other:
            assert 80 <= len(await other.poll()) < 100


async def _lag_is(world: World, lag: int) -> bool:
    return await world.lag() == lag


@virtually
async def test_closing_during_a_join_leaves_no_member_behind(world: World) -> None:
    """At every point of the join; the coordinator may have received the request without answering it yet."""
    await world.topic(TOPIC, "a")
    for half_ms in range(60):
        group = f"group-{half_ms}"
        consumer = world.consumer(group=group)
        await consumer.start()
        await asyncio.sleep(half_ms / 2_000)
        await consumer.close()
        assert await world.members(group) == [], f"closed after {half_ms / 2} ms"


@virtually
async def test_a_warning_names_a_missing_topic_and_the_nearest_name(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.topic("orders")
    async with world.consumer("oders", "orders") as consumer:
        assert await consumer.poll(timeout=2.0) == []
        assert _warnings(caplog) == [
            "The topic oders does not exist; no record arrives until it is created. Did you mean orders?"
        ]
        caplog.clear()
        consumer.subscribe(["zzz"])
        await asyncio.sleep(2.0)
        assert _warnings(caplog) == ["The topic zzz does not exist; no record arrives until it is created."]


@virtually
async def test_a_topic_that_is_created_in_time_gives_no_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.group()
    async with world.consumer("orders") as consumer:
        await asyncio.sleep(0.5)
        await world.topic("orders", "a")
        assert values(await take(consumer, 1)) == ["a"]
        await asyncio.sleep(2.0)
    assert _warnings(caplog) == []


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
