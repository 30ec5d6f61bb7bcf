"""Individual commits of one consumer against the real broker in virtual time: by record, range and batch."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from barnabas.client import BrokerError, MisuseError, UnreadableRecordError, UnsupportedBrokerError
from barnabas.protocol.errors import ErrorCode
from tests.client.consume.sharing import sharer, stable_and_ranges
from tests.client.consumer_world import Journal, all_that_come, consumer, partitions, producer, take, values
from tests.client.virtual_world import TOPIC, World, virtually, with_settings

(FIRST,) = partitions(0)


@virtually
async def test_records_are_committed_one_by_one_in_any_order(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 6)
        for index in (4, 2):
            async with records[index]:
                pass
        records[1].mark_processed()
        with pytest.raises(ZeroDivisionError):
            async with records[0]:
                raise ZeroDivisionError
        await one.commit_ranges({})
        assert await stable_and_ranges(world) == (-1, [(1, 2), (4, 4)])
    async with sharer(world) as other:
        assert values(await all_that_come(other)) == ["a", "d", "f"], "the others are committed"
    assert await stable_and_ranges(world) == (5, [])


@virtually
async def test_a_commit_by_batch_leaves_out_the_records_that_the_application_still_holds(
    world: World,
) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 4)
        async with records[1]:
            await one.commit()
            assert await stable_and_ranges(world) == (0, [(2, 3)])
        await one.commit()
        assert await stable_and_ranges(world) == (3, [])


@virtually
async def test_a_range_commits_all_its_offsets_in_a_whole_partition(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, enable_auto_commit=False) as one:
        await take(one, 1)
        await one.commit_ranges({FIRST: [(3, 4), (1, 1)]})
        assert await stable_and_ranges(world) == (-1, [(1, 1), (3, 4)])
        with pytest.raises(MisuseError, match="4 to 3 of orders-0 is no range"):
            await one.commit_ranges({FIRST: [(4, 3)]})
    async with sharer(world) as other:
        assert values(await all_that_come(other)) == ["a", "c", "f"]


@virtually
async def test_automatic_commits_take_the_records_of_earlier_polls_only(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, auto_commit_interval_ms=1_000) as one:
        await one.poll(max_records=2)
        await one.poll(max_records=2)
        await asyncio.sleep(10)
        assert await stable_and_ranges(world) == (1, []), "the second batch is still in work"
    assert await stable_and_ranges(world) == (3, []), "a close commits all that was delivered"


@virtually
async def test_a_record_whose_block_has_failed_is_not_committed_automatically(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    async with sharer(world, auto_commit_interval_ms=1_000) as one:
        for record in await take(one, 3):
            with suppress(ZeroDivisionError):
                async with record:
                    if record.value == b"b":
                        raise ZeroDivisionError
        assert await one.poll(timeout=10) == []
        assert await stable_and_ranges(world) == (0, [(2, 2)])
        one.seek_to_committed()
        assert values(await take(one, 1)) == ["b"]
    assert await stable_and_ranges(world) == (2, [])


@virtually
async def test_records_of_the_last_poll_are_not_committed_if_the_application_fails(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    with pytest.raises(ZeroDivisionError):
        async with sharer(world) as one:
            async for record in one:
                if record.value == b"b":
                    raise ZeroDivisionError
    assert await stable_and_ranges(world) == (0, [])


@pytest.mark.parametrize("enable_auto_commit", [True, False])
@virtually
async def test_more_ranges_than_the_option_says_are_committed_at_once(
    world: World, enable_auto_commit: bool
) -> None:
    await world.topic(TOPIC, *"abcdefgh")
    async with sharer(
        world,
        enable_auto_commit=enable_auto_commit,
        auto_commit_interval_ms=3_600_000,
        max_num_ranges_to_commit=2,
    ) as one:
        records = await take(one, 8)
        for index in (1, 3):
            records[index].mark_processed()
        await asyncio.sleep(60)
        assert await stable_and_ranges(world) == (-1, []), "two ranges may wait"
        records[5].mark_processed()
        await asyncio.sleep(1)
        assert await stable_and_ranges(world) == (-1, [(1, 1), (3, 3), (5, 5)])


@virtually
async def test_a_group_begins_at_the_position_that_the_first_consumer_has_committed(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    async with sharer(world, auto_offset_reset="latest") as one:
        assert await one.poll(timeout=5) == []
        assert await stable_and_ranges(world) == (2, []), "before any record is delivered"
        await world.write(TOPIC, "d")
    async with sharer(world, auto_offset_reset="earliest") as other:
        assert values(await all_that_come(other)) == ["d"]


@virtually
async def test_a_group_begins_where_the_listener_seeks(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")

    class Seeking(Journal):
        async def on_assigned(self, partitions: object) -> None:
            assert self.consumer is not None
            self.consumer.seek(FIRST, 4)

    journal = Seeking()
    async with sharer(world, listener=journal) as one:
        journal.consumer = one
        assert values(await take(one, 2)) == ["e", "f"]
        await one.commit()
    assert await stable_and_ranges(world) == (5, [])


@virtually
async def test_markers_and_aborted_records_do_not_hold_the_stable_offset_back(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with producer(world, transactional_id="t") as writer:
        await writer.init_transactions()
        for value, commits in ((b"b", True), (b"x", False), (b"c", True), (b"y", False)):
            writer.begin_transaction()
            await writer.send_and_wait(TOPIC, value)
            await (writer.commit_transaction() if commits else writer.abort_transaction())
    await world.write(TOPIC, "d")
    async with sharer(world, isolation_level="read_committed", enable_auto_commit=False) as one:
        assert values(await take(one, 4)) == ["a", "b", "c", "d"]
        await one.commit()
        assert await stable_and_ranges(world) == (9, [])
        assert (await one.end_offsets([FIRST]))[FIRST] == 10


@virtually
async def test_offsets_that_retention_has_removed_do_not_hold_the_stable_offset_back(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 6)
        records[5].mark_processed()
        await one.commit_ranges({})
    await world.delete_records(TOPIC, 4)
    async with sharer(world, enable_auto_commit=False, auto_offset_reset="latest") as other:
        assert values(await take(other, 1)) == ["e"], "nothing that is left is skipped"
        await other.commit()
        assert await stable_and_ranges(world) == (5, [])


@virtually
async def test_a_seek_back_delivers_the_uncommitted_records_again(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 6)
        records[2].mark_processed()
        await one.commit_ranges({})
        records[3].mark_processed()
        one.seek(FIRST, 1)
        assert values(await all_that_come(one)) == ["b", "d", "e", "f"]
        one.pause([FIRST])
        one.seek_to_beginning()
        assert await one.poll(timeout=3) == []
        one.resume([FIRST])
        assert values(await all_that_come(one)) == ["a", "b", "d", "e", "f"]


@virtually
async def test_an_unreadable_record_can_be_skipped_with_a_range(world: World) -> None:
    await world.topic(TOPIC, "1", "nonsense", "3")
    async with sharer(world, value_deserializer=json.loads, enable_auto_commit=False) as one:
        await take(one, 1)
        with pytest.raises(UnreadableRecordError, match="orders-0: the record at 1 cannot be read"):
            await one.poll()
        one.seek(FIRST, 2)
        await one.commit_ranges({FIRST: [(1, 1)]})
        await take(one, 1)
        await one.commit()
        assert await stable_and_ranges(world) == (2, [])


@virtually
@with_settings(offset__partition__ranges__max="3")
async def test_beyond_the_limit_of_the_broker_ranges_wait_until_the_stable_offset_moves(
    world: World,
) -> None:
    await world.topic(TOPIC, *"abcdefghijkl")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 12)
        for index in (1, 3, 5, 7, 9, 11):
            records[index].mark_processed()
        committing = asyncio.create_task(one.commit_ranges({}))
        await asyncio.sleep(5)
        assert await stable_and_ranges(world) == (-1, [(1, 1), (3, 3), (5, 5)])
        assert one.metrics()["ranges-to-commit"] == 3
        for index in (0, 2):
            records[index].mark_processed()
        await asyncio.sleep(5)
        assert await stable_and_ranges(world) == (3, [(5, 5), (7, 7), (9, 9)])
        assert not committing.done()
        records[4].mark_processed()
        await committing
        assert await stable_and_ranges(world) == (5, [(7, 7), (9, 9), (11, 11)])


@virtually
@with_settings(offset__partition__ranges__max="40")
async def test_the_ranges_below_the_limit_are_found_with_few_requests(world: World) -> None:
    await world.topic(TOPIC, *map(str, range(200)))
    async with sharer(world, enable_auto_commit=False) as one:
        for record in await take(one, 200):
            if record.offset % 2:
                record.mark_processed()
        committing = asyncio.create_task(one.commit_ranges({}))
        await asyncio.sleep(1)
        assert one.metrics()["ranges-to-commit"] == 60
        assert one.metrics()["commit-total"] < 30
        committing.cancel()


@virtually
@with_settings(offset__partition__ranges__max="2")
async def test_a_partition_beyond_the_limit_delivers_nothing_and_goes_on_by_itself(world: World) -> None:
    await world.topic(TOPIC, *"abcdefg")
    async with sharer(world, enable_auto_commit=False) as one:
        records = await take(one, 6)
        for index in (1, 3, 5):
            records[index].mark_processed()
        with pytest.raises(BrokerError, match=r"offset\.partition\.ranges\.max") as refused:
            await one.commit_ranges({})
        assert refused.value.code is ErrorCode.invalid_commit_offset_size
        assert await one.poll(timeout=20) == [], "the application has enough to do"
        for index in (0, 2, 4):
            records[index].mark_processed()
        assert values(await take(one, 1)) == ["g"]
        await asyncio.sleep(10)
        assert await stable_and_ranges(world) == (5, [])


@virtually
@with_settings(offset__partition__ranges__max="2")
async def test_a_seek_to_the_committed_offsets_reads_a_partition_beyond_the_limit(world: World) -> None:
    await world.topic(TOPIC, *"abcdef")
    async with sharer(world, auto_commit_interval_ms=1_000) as one:
        for record in await take(one, 6):
            with suppress(ZeroDivisionError):
                async with record:
                    if record.offset % 2 == 0:
                        raise ZeroDivisionError
        assert await one.poll(timeout=20) == []
        one.seek_to_committed()
        assert values(await all_that_come(one)) == ["a", "c", "e", "f"]
    assert await stable_and_ranges(world) == (5, [])


@virtually
async def test_a_commit_that_exceeds_a_request_is_split(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.client.consume.range_commits.REQUEST_RANGES_MAX", 3)
    await world.topic(TOPIC, partition_count=2)
    for index in range(2):
        await world.write(TOPIC, *map(str, range(20)), partition=index)
    async with sharer(world, enable_auto_commit=False) as one:
        for record in await take(one, 40):
            if record.offset % 2:
                record.mark_processed()
        await one.commit_ranges({})
        assert one.metrics()["commit-total"] == 8, "4 requests for each partition"
        for index in range(2):
            assert await stable_and_ranges(world, index) == (-1, [(n, n) for n in range(1, 20, 2)])


@virtually
async def test_a_commit_that_fails_keeps_its_ranges(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    async with sharer(world, auto_commit_interval_ms=1_000) as one:
        await take(one, 3)
        world.kill()
        assert await one.poll(timeout=10) == []
        await world.start()
        assert await one.poll(timeout=10) == []
        assert await stable_and_ranges(world) == (2, [])


@virtually
async def test_a_broker_without_the_feature_is_refused_with_one_clear_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.topic()
    monkeypatch.setattr("barnabas.broker.handlers.api_versions.EXTENSIONS", {})
    with pytest.raises(UnsupportedBrokerError, match="or leave out allow_individual_commit"):
        await sharer(world).start()
    async with consumer(world) as one:
        assert await one.poll(timeout=1) == [], "other consumers do not need it"


@virtually
async def test_calls_for_individual_commits_need_the_option(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with consumer(world) as one:
        (record,) = await take(one, 1)
        with pytest.raises(MisuseError, match="allow_individual_commit"):
            record.mark_processed()
        with pytest.raises(MisuseError, match="allow_individual_commit"):
            async with record:
                pass
        with pytest.raises(MisuseError, match="allow_individual_commit"):
            await one.commit_ranges({})
        with pytest.raises(MisuseError, match="allow_individual_commit"):
            one.take_ranges()
    async with sharer(world) as other:
        await other.poll(timeout=1)
        with pytest.raises(MisuseError, match="use commit_ranges"):
            await other.commit({FIRST: 1})


@virtually
async def test_an_ordinary_consumer_can_seek_to_the_committed_offset(world: World) -> None:
    await world.topic(TOPIC, *"abc")
    async with consumer(world, enable_auto_commit=False) as one:
        await take(one, 1)
        await one.commit()
        await take(one, 2)
        one.seek_to_committed()
        assert values(await take(one, 2)) == ["b", "c"]
