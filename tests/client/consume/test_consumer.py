"""The consumer's interface against the real broker in virtual time: positions, commits, pauses, errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection

import pytest

from barnabas.client import (
    CommitFailedError,
    ConsumerClosedError,
    MisuseError,
    NoOffsetError,
    RebalanceListener,
    TopicPartition,
    UnreadableRecordError,
    WakeupError,
)
from tests.client.consumer_world import all_that_come, consumer, partitions, take, values
from tests.client.virtual_world import TOPIC, World, virtually

(FIRST,) = partitions(0)


@virtually
async def test_records_arrive_in_their_order_with_all_their_fields(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    async with consumer(world) as one:
        first, second = await take(one, 2)
        assert (first.topic, first.partition, first.offset, first.value) == (TOPIC, 0, 0, b"a")
        assert (second.offset, second.key, second.headers) == (1, None, ())
        await world.write(TOPIC, "c")
        assert values(await take(one, 1)) == ["c"]
        assert await one.poll(timeout=1) == []


@virtually
async def test_a_loop_ends_when_the_consumer_is_closed(world: World) -> None:
    await world.topic(TOPIC, "a", "b")
    one = consumer(world)
    await one.start()

    async def read() -> list[bytes | None]:
        return [record.value async for record in one]

    reading = asyncio.create_task(read())
    await asyncio.sleep(5)
    await one.close()
    assert await reading == [b"a", b"b"]
    with pytest.raises(ConsumerClosedError):
        await one.poll()


@virtually
async def test_a_stop_ends_a_loop_after_the_record_in_work_which_the_close_commits(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    async with consumer(world) as one:
        read: list[bytes | None] = []
        async for record in one:
            read.append(record.value)
            if record.value == b"b":
                one.stop()
        assert read == [b"a", b"b"]
        with pytest.raises(ConsumerClosedError, match="stopped"):
            await one.poll()
    async with consumer(world) as other:
        assert values(await all_that_come(other)) == ["c"]


@virtually
async def test_a_stop_ends_a_poll_that_waits_and_batches(world: World) -> None:
    await world.topic(TOPIC)
    async with consumer(world) as one:
        polling = asyncio.create_task(one.poll())
        await asyncio.sleep(5)
        one.stop()
        with pytest.raises(ConsumerClosedError):
            await polling
        assert [records async for records in one.batches()] == []
        assert one.assignment() == {FIRST}, "it keeps its partitions until the close"


@virtually
async def test_a_stop_does_not_wait_for_a_rebalance(world: World) -> None:
    await world.topic(TOPIC, "a")
    revoked: list[TopicPartition] = []

    class Listener(RebalanceListener):
        async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
            revoked.extend(partitions)

    async with consumer(world, listener=Listener()) as one:
        await take(one, 1)
        one.subscribe(["others"])
        await asyncio.sleep(30)
        one.stop()
        with pytest.raises(ConsumerClosedError):
            await one.poll()
        assert revoked == []
    assert revoked == [FIRST]


@virtually
async def test_a_loop_ends_after_a_stop_also_if_it_was_woken_or_reads_no_topic(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with consumer(world) as one:
        one.wakeup()
        one.stop()
        assert [record async for record in one] == []
    async with consumer(world) as other:
        await other.unsubscribe()
        other.stop()
        assert [records async for records in other.batches()] == []


@virtually
async def test_a_stopped_consumer_that_is_not_closed_loses_its_partitions_as_if_it_did_not_poll(
    world: World,
) -> None:
    await world.topic(TOPIC, "a")
    async with consumer(world, max_poll_interval_ms=10_000, enable_auto_commit=False) as one:
        await take(one, 1)
        one.stop()
        await asyncio.sleep(25)
        with pytest.raises(CommitFailedError):
            await one.commit()


@virtually
async def test_a_stop_before_the_start_and_after_the_close_does_nothing(world: World) -> None:
    await world.topic(TOPIC, "a")
    one = consumer(world)
    one.stop()
    async with one:
        assert values(await take(one, 1)) == ["a"]
    one.stop()


@virtually
async def test_a_commit_is_where_the_next_consumer_continues(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    async with consumer(world, enable_auto_commit=False) as one:
        await take(one, 2)
        await one.commit()
        await take(one, 1)
        assert await one.position(FIRST) == 3
    async with consumer(world, enable_auto_commit=False) as other:
        assert values(await take(other, 1)) == ["c"]
        await other.commit({FIRST: 1})
        found = (await other.committed([FIRST, TopicPartition(TOPIC, 7)])).values()
        assert [committed and committed.offset for committed in found] == [1, None]


@virtually
async def test_a_close_commits_all_that_was_delivered(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    async with consumer(world) as one:
        await take(one, 2)
    async with consumer(world) as other:
        assert values(await all_that_come(other)) == ["c"]


@virtually
async def test_records_of_the_last_poll_are_not_committed_if_the_application_fails(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    with pytest.raises(ZeroDivisionError):
        async with consumer(world) as one:
            async for record in one:
                if record.value == b"b":
                    raise ZeroDivisionError
    async with consumer(world) as other:
        assert values(await all_that_come(other)) == ["b", "c"]


@virtually
async def test_a_slow_application_does_not_delay_the_automatic_commit(world: World) -> None:
    await world.topic(TOPIC, "a", "b", "c")
    async with consumer(world, auto_commit_interval_ms=1_000) as one:
        await one.poll(max_records=1)
        await one.poll(max_records=1)
        await asyncio.sleep(30)
        (committed,) = (await one.committed([FIRST])).values()
        assert committed is not None
        assert committed.offset == 1, "the second record is still in work"


@virtually
async def test_seek_continues_elsewhere_and_drops_fetched_records(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with consumer(world) as one:
        assert values(await take(one, 2)) == ["a", "b"]
        one.seek(FIRST, 4)
        assert values(await take(one, 2)) == ["e", "f"]
        one.seek_to_beginning()
        assert await one.position(FIRST) == 0
        assert values(await take(one, 1)) == ["a"]
        one.seek_to_end([FIRST])
        assert await one.position(FIRST) == 6
        await world.write(TOPIC, "g")
        assert values(await take(one, 1)) == ["g"]
        with pytest.raises(MisuseError, match="orders-9 is not assigned"):
            one.seek(TopicPartition(TOPIC, 9), 0)


@virtually
async def test_a_paused_partition_delivers_nothing_until_it_is_resumed(world: World) -> None:
    await world.topic(TOPIC, partition_count=2)
    await world.write(TOPIC, *"abc", partition=0)
    await world.write(TOPIC, *"xyz", partition=1)
    async with consumer(world) as one:
        await take(one, 1)
        one.pause(partitions(0))
        assert one.paused() == frozenset(partitions(0))
        assert {record.partition for record in await all_that_come(one)} <= {1}
        one.resume(partitions(0))
        assert {record.partition for record in await all_that_come(one)} == {0}


@pytest.mark.parametrize(("reset", "expected"), [("earliest", ["a", "b"]), ("latest", ["b"])])
@virtually
async def test_a_group_without_offsets_begins_where_the_policy_says(
    world: World, reset: str, expected: list[str]
) -> None:
    await world.topic(TOPIC, "a")
    async with consumer(world, auto_offset_reset=reset) as one:
        polled = await one.poll(timeout=5)
        await world.write(TOPIC, "b")
        assert values(polled + await all_that_come(one)) == expected


@virtually
async def test_without_a_policy_a_missing_offset_is_an_error_until_the_application_seeks(
    world: World,
) -> None:
    await world.topic(TOPIC, "a", "b")
    async with consumer(world, auto_offset_reset="none") as one:
        for _ in range(2):
            with pytest.raises(NoOffsetError, match="no committed offset for orders-0"):
                await one.poll()
        one.seek(FIRST, 1)
        assert values(await take(one, 1)) == ["b"]


@virtually
async def test_a_position_that_the_log_no_longer_holds_is_reset(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with consumer(world) as one:
        await take(one, 6)
        await world.delete_records(TOPIC, 4)
        one.seek(FIRST, 1)
        assert values(await take(one, 2)) == ["e", "f"]


@virtually
async def test_a_record_that_cannot_be_read_is_an_error_that_a_seek_skips(world: World) -> None:
    await world.topic(TOPIC, "1", "nonsense", "3")
    async with consumer(world, value_deserializer=json.loads) as one:
        assert [str(record.value) for record in await take(one, 1)] == ["1"]
        for _ in range(2):
            with pytest.raises(UnreadableRecordError, match="orders-0: the record at 1 cannot be read"):
                await one.poll()
        one.seek(FIRST, 2)
        assert [str(record.value) for record in await take(one, 1)] == ["3"]


@virtually
async def test_wakeup_ends_the_poll_of_another_task(world: World) -> None:
    await world.topic()
    async with consumer(world) as one:
        polling = asyncio.create_task(one.poll())
        await asyncio.sleep(10)
        one.wakeup()
        with pytest.raises(WakeupError):
            await polling
        one.wakeup()
        with pytest.raises(WakeupError):
            await one.poll()
        await world.write(TOPIC, "a")
        assert values(await take(one, 1)) == ["a"]


@virtually
async def test_only_one_task_may_poll(world: World) -> None:
    await world.topic()
    async with consumer(world) as one:
        polling = asyncio.create_task(one.poll(timeout=10))
        await asyncio.sleep(1)
        with pytest.raises(MisuseError, match="Another task is polling"):
            await one.poll()
        assert await polling == []


@virtually
async def test_topics_partitions_and_their_ends_can_be_asked_for(world: World) -> None:
    await world.topic(TOPIC, "a", "b", partition_count=2)
    async with consumer(world) as one:
        assert [(topic.name, topic.partition_count) for topic in await one.list_topics()] == [(TOPIC, 2)]
        names = await one.partitions_for(TOPIC)
        assert names == partitions(0, 1)
        assert await one.beginning_offsets(names) == dict.fromkeys(names, 0)
        assert list((await one.end_offsets(names)).values()) == [2, 0]
        assert one.subscription() == {TOPIC}
        await take(one, 2)
        assert one.metrics()["records-consumed-total"] == 2
        assert one.metrics()["records-lag"] == 0
