"""`ShareBrowser` and `ShareGroupAdmin` against the real broker in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest

from barnabas.client import (
    BrokerError,
    BrokerUnavailableError,
    BrowsedRecord,
    Cause,
    DescribedState,
    GroupNotFoundError,
    MisuseError,
    RecordRange,
    ShareBrowser,
    ShareGroupAdmin,
    TopicPartition,
    UnknownTopicError,
    UnsupportedBrokerError,
    Wait,
)
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import Topics
from barnabas.client.consume.topic_reader import TopicReader
from barnabas.client.inspect.browsing import browse
from barnabas.client.inspect.record_range import page_of
from barnabas.client.network.address import parse_bootstrap
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.describe_share_records_v0 import (
    DescribedRange,
    DescribeShareRecordsResponse,
)
from barnabas.protocol.primitive import i8, i16, i64, milliseconds
from tests.client.holding import holding, topic_of
from tests.client.scripted_broker import OTHER_PORT, listen_as_only_node
from tests.client.virtual_world import ADDRESS, GROUP, LOCK_MS, TOPIC, World, virtually

AVAILABLE, ACQUIRED = DescribedState.AVAILABLE, DescribedState.ACQUIRED
ACKNOWLEDGED, ARCHIVED, NEW = DescribedState.ACKNOWLEDGED, DescribedState.ARCHIVED, DescribedState.NEW


def browser(group: str = GROUP, **options: Any) -> ShareBrowser:
    return ShareBrowser(ADDRESS, group=group, **options)


def admin(group: str = GROUP) -> ShareGroupAdmin:
    return ShareGroupAdmin(ADDRESS, group=group)


async def ranges(look: ShareBrowser, **options: Any) -> list[RecordRange]:
    return [one async for one in look.ranges(TOPIC, 0, **options)]


async def records(look: ShareBrowser, **options: Any) -> list[BrowsedRecord]:
    return [one async for one in look.records(TOPIC, 0, **options)]


def states(found: list[RecordRange]) -> list[tuple[int, int, DescribedState]]:
    return [(one.first_offset, one.last_offset, one.state) for one in found]


def contents(found: list[BrowsedRecord]) -> list[tuple[bytes | None, DescribedState]]:
    return [(one.value, one.group.state) for one in found]


@virtually
async def test_each_record_is_read_beside_its_state_and_its_holder(world: World) -> None:
    await topic_of(world, "a", "b", "c", "d", "e")
    async with holding(world, 3) as (consumer, held), browser() as look:
        held[1].accept()
        held[2].release()
        await consumer.commit()
        found = await records(look)
        assert contents(found) == [
            (b"a", ACQUIRED),
            (b"b", ACKNOWLEDGED),
            (b"c", AVAILABLE),
            (b"d", NEW),
            (b"e", NEW),
        ]
        first = found[0].group
        assert first.holder is not None
        assert first.holder.client_id == "app"
        assert 0 < first.holder.lock_remaining_ms <= 30_000
        assert first.holder.acquired_ms is not None
        assert 0 < first.holder.lock_deadline_ms - first.holder.acquired_ms <= 30_000
        causes = [one.group.last_change and one.group.last_change.cause for one in found]
        assert causes == [Cause.NONE, Cause.ACCEPT, Cause.RELEASE, Cause.NONE, Cause.NONE]
        assert {one.group.wait for one in found} == {Wait.NOTHING}


@virtually
async def test_browsing_neither_joins_the_group_nor_moves_it(world: World) -> None:
    await topic_of(world, "a", "b")
    async with holding(world, 1) as _, browser() as look:
        before = await look.progress(TOPIC, 0)
        assert (before.start_offset, before.end_offset, before.log_start_offset) == (0, 1, 0)
        for _ in range(2):
            assert [one.value for one in await records(look)] == [b"a", b"b"]
        assert await look.progress(TOPIC, 0) == before
        described = world.broker.groups.share.describe(GROUP)
        assert [one.client_id for one in described.members] == ["app"]


@virtually
async def test_offsets_and_states_restrict_the_records(world: World) -> None:
    await topic_of(world, *map(str, range(10)))
    async with holding(world, 6) as (consumer, held), browser() as look:
        for record in held[1::2]:
            record.release()
        await consumer.commit()
        assert states(await ranges(look, first_offset=2, last_offset=7)) == [
            (2, 2, ACQUIRED),
            (3, 3, AVAILABLE),
            (4, 4, ACQUIRED),
            (5, 5, AVAILABLE),
            (6, 7, NEW),
        ]
        held_now = await records(look, states=[ACQUIRED])
        assert [one.offset for one in held_now] == [0, 2, 4]
        assert await records(look, first_offset=8, last_offset=7) == []


@virtually
async def test_pages_are_joined(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.client.inspect.share_browser.PAGE_RANGES", 2)
    await topic_of(world, *map(str, range(9)))
    async with holding(world, 9) as (consumer, held), browser() as look:
        for record in held[::2]:
            record.release()
        await consumer.commit()
        assert [one.offset for one in await records(look)] == list(range(9))
        assert len(await ranges(look)) == 9


@pytest.mark.usefixtures("records_only_in_files")
@virtually
async def test_a_damaged_batch_is_shown_as_unreadable(world: World) -> None:
    await topic_of(world, "a")
    await world.write(TOPIC, "b", "c")
    async with holding(world, 1) as _, browser() as look:
        log = world.filesystem.files["/data/orders-0/00000000000000000000.log"]
        log[bytes(log).index(b"b", 61)] ^= 1
        found = await records(look)
        assert [one.offset for one in found] == [0, 1, 2]
        assert [one.unreadable is None for one in found] == [True, False, False]
        assert found[1].value is None


@virtually
async def test_records_that_were_deleted_meanwhile_are_left_out(world: World) -> None:
    await topic_of(world, "a", "b", "c", "d")
    async with holding(world, 1) as _, browser() as look:
        found = await ranges(look)
    await world.delete_records(TOPIC, 2)
    cluster = Cluster(parse_bootstrap(ADDRESS), client_id="test", request_timeout_ms=1_000)
    with closing(cluster), closing(Topics(cluster)) as topics, closing(TopicReader(cluster)) as reader:
        (topic,) = await topics.find([TOPIC])
        left = [one async for one in browse(reader, topic.partitions[0], found)]
    assert contents(left) == [(b"c", NEW), (b"d", NEW)]


@virtually
async def test_the_partitions_of_the_group_are_found(world: World) -> None:
    await world.topic(TOPIC, "a", partition_count=2)
    await world.group()
    async with browser() as look:
        assert await look.partitions() == []
        async with world.consumer():
            await asyncio.sleep(1)
        assert await look.partitions() == [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]


@virtually
async def test_an_administrator_releases_and_archives_records(world: World) -> None:
    await topic_of(world, *map(str, range(5)))
    async with holding(world, 5) as (consumer, held), browser() as look, admin() as change:
        assert await change.release(TOPIC, 0, 0) == 1
        assert await change.archive(TOPIC, 0, 2, 3) == 2
        assert states(await ranges(look)) == [
            (0, 0, AVAILABLE),
            (1, 1, ACQUIRED),
            (2, 3, ARCHIVED),
            (4, 4, ACQUIRED),
        ]
        held[2].accept()
        await consumer.commit()
        (outcome,) = [one for one in world.outcomes if one.error is not None]
        assert outcome.offsets == [2]
        assert outcome.error is not None
        assert outcome.error.code is ErrorCode.invalid_record_state


@virtually
async def test_the_error_names_the_record_that_cannot_be_changed(world: World) -> None:
    await topic_of(world, "a", "b")
    async with holding(world, 1) as _, admin() as change:
        with pytest.raises(BrokerError, match="The group has not acquired the record at 1 yet"):
            await change.archive(TOPIC, 0, 0, 1)
        with pytest.raises(BrokerError, match="no dead letters") as raised:
            await change.dead_letter(TOPIC, 0, 0)
        assert raised.value.code is ErrorCode.invalid_config


@virtually
async def test_the_view_follows_the_locks(world: World) -> None:
    await world.topic(TOPIC, "a")
    await world.group(record_lock_duration_ms=LOCK_MS)
    async with holding(world, 1) as _, browser() as look:
        assert states(await ranges(look)) == [(0, 0, ACQUIRED)]
        await asyncio.sleep(LOCK_MS / 1000)
        (one,) = await ranges(look)
        assert one.state is AVAILABLE
        assert one.last_change is not None
        assert one.last_change.cause is Cause.LOCK_EXPIRED


@virtually
async def test_a_restart_of_the_broker_is_waited_for(world: World) -> None:
    await topic_of(world, "a", "b")
    async with holding(world, 1) as (consumer, held), browser() as look:
        held[0].release()
        await consumer.commit()
        world.kill()
        await world.start()
        assert states(await ranges(look))[0] == (0, 0, AVAILABLE)


@virtually
async def test_wrong_names_are_errors(world: World) -> None:
    await world.topic(TOPIC, "a")
    async with browser(request_timeout_ms=5_000, connect_timeout_ms=1_000) as look:
        with pytest.raises(GroupNotFoundError):
            await ranges(look)
        with pytest.raises(UnknownTopicError):
            await look.progress("missing", 0)
        with pytest.raises(MisuseError, match="orders has no partition 1; its last one is 0"):
            await look.progress(TOPIC, 1)
    with pytest.raises(MisuseError, match="There is no option client; did you mean client_id"):
        browser(client="x")


@virtually
async def test_a_missing_broker_is_an_error_in_the_end(world: World) -> None:
    with pytest.raises(BrokerUnavailableError):
        async with ShareBrowser("broker:1", group=GROUP, connect_timeout_ms=1_000):
            pass


@virtually
async def test_another_broker_is_named_in_the_error(world: World) -> None:
    topic = {"name": TOPIC, "topic_id": UUID(int=1), "error_code": ErrorCode.none}
    partition = {"partition_index": 0, "leader_id": 1, "error_code": ErrorCode.none}
    await listen_as_only_node({}, {**topic, "partitions": [partition]})
    async with ShareBrowser(f"broker:{OTHER_PORT}", group=GROUP) as look:
        with pytest.raises(UnsupportedBrokerError, match="does not support DESCRIBE_SHARE_RECORDS"):
            await look.progress(TOPIC, 0)


def test_unknown_states_of_a_newer_broker_are_refused() -> None:
    response = DescribeShareRecordsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        start_offset=i64(0),
        end_offset=i64(1),
        log_start_offset=i64(0),
        high_watermark=i64(1),
        ranges=(
            DescribedRange(
                first_offset=i64(0), last_offset=i64(0), state=i8(77), delivery_count=i16(0), wait=i8(0)
            ),
        ),
        next_offset=i64(-1),
    )
    with pytest.raises(ValueError, match="77"):
        page_of(TOPIC, 0, response)
