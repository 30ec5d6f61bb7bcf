"""The progress of share groups over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from tests.broker.http.api.working_group import GROUP_PATH, WorkingGroup, working_group
from tests.conformance.acknowledging_in_transactions import initialised
from tests.conformance.share_member import ACCEPT, RELEASE
from tests.conformance.transacting import OK

STORES = pytest.mark.parametrize("store", ["log", "topic"])


@STORES
async def test_the_lag_counts_all_records_that_are_not_final(store: str) -> None:
    async with working_group(5, 5, store=store) as group:
        await group.member.take(6)
        await group.member.acknowledge([(1, 2, ACCEPT)])
        assert await group.http.json(f"{GROUP_PATH}/lag") == {
            "group_id": "group",
            "lag": 8,
            "partition_count": 2,
            "unknown_count": 0,
        }


async def test_the_lag_of_a_group_without_members_is_known_after_a_restart() -> None:
    async with working_group(5) as group:
        await group.member.take(5)
        await group.member.acknowledge([(0, 1, ACCEPT)])
        lab = group.http.lab
        await lab.advance(200_000)
        assert not list(lab.broker.share_partitions)
        assert (await group.http.json(f"{GROUP_PATH}/lag"))["lag"] == 3


async def test_each_partition_has_its_progress() -> None:
    async with working_group(5) as group:
        await group.member.take(3)
        first = await group.http.json(f"{GROUP_PATH}/partitions?limit=1")
        [progress] = first["partitions"]
        assert progress == {
            "topic": "t",
            "partition": 0,
            "start_offset": 0,
            "end_offset": progress["end_offset"],
            "high_watermark": 5,
            "lag": 5,
            "oldest_record_timestamp_ms": group.http.lab.clock.wall_ms(),
            "in_flight_count": progress["locked_count"],
            "locked_count": progress["locked_count"],
            "waiting_count": 0,
            "error": None,
        }
        assert 3 <= progress["locked_count"] == progress["end_offset"]
        assert first["next_cursor"] == "t:0"
        second = await group.http.json(f"{GROUP_PATH}/partitions?limit=1&cursor=t:0")
        assert [one["partition"] for one in second["partitions"]] == [1]
        assert second["next_cursor"] is None


async def test_the_oldest_record_is_the_one_at_the_start_offset() -> None:
    async with working_group(1) as group:
        lab, begin_ms = group.http.lab, group.http.lab.clock.wall_ms()
        await lab.advance(1_000)
        await lab.produce(group.partition.topic_id, 1)
        await group.member.take(2)
        await lab.advance(500)
        assert await oldest_of(group) == [begin_ms, None]
        await group.member.accept(0, 0)
        assert await oldest_of(group) == [begin_ms + 1_000, None]
        await lab.delete_records("t", 2)
        assert await oldest_of(group) == [None, None]


async def test_a_marker_of_a_transaction_is_no_oldest_record() -> None:
    async with working_group() as group:
        lab = group.http.lab
        producer = await initialised(lab.client("producer"))
        assert await producer.write(records=1) is OK
        await group.member.take(1)
        assert await producer.end(commit=True) is OK
        await group.member.accept(0, 0)
        assert (await group.http.json(f"{GROUP_PATH}/lag"))["lag"] == 1
        assert await oldest_of(group) == [None, None]
        await lab.produce(group.partition.topic_id, 1)
        assert await oldest_of(group) == [lab.clock.wall_ms(), None]


async def test_a_group_that_has_not_begun_has_no_oldest_record() -> None:
    async with working_group(1) as group:
        assert await oldest_of(group) == [None, None]


async def test_the_progress_of_a_group_at_rest_does_not_change_with_the_time() -> None:
    """A console that follows it gets nothing then."""
    async with working_group(2) as group:
        await group.member.take(2)
        await group.member.acknowledge([(0, 1, RELEASE)])
        before = await group.http.json(f"{GROUP_PATH}/partitions")
        await group.http.lab.advance(60_000)
        assert await group.http.json(f"{GROUP_PATH}/partitions") == before


async def test_an_unknown_share_group_is_not_found() -> None:
    async with working_group(1) as group:
        for name in ("lag", "partitions"):
            response = await group.http.get(f"/api/v1/share-groups/nothing/{name}")
            assert (response.status_code, response.json()["kafka_error"]) == (404, "GROUP_ID_NOT_FOUND")


async def test_a_group_that_has_not_begun_has_no_lag_of_zero() -> None:
    async with working_group(1) as group:
        lab = group.http.lab
        await lab.client("new").ask(
            "share_group_heartbeat",
            group_id="new",
            member_id="member-9",
            member_epoch=0,
            subscribed_topic_names=["t"],
        )
        response = await group.http.get("/api/v1/share-groups/new/lag")
        assert response.status_code == 404
        assert response.json()["detail"] == "The share group new has not begun to read a partition."


async def test_other_work_runs_between_the_partitions_of_a_page() -> None:
    async with working_group(5) as group:
        turns_before = await turns_of(group, f"{GROUP_PATH}/partitions?limit=2")  # loads both partitions
        turns = [await turns_of(group, f"{GROUP_PATH}/partitions?limit={limit}") for limit in (1, 2)]
        assert turns[0] < turns[1] <= turns_before


async def oldest_of(group: WorkingGroup) -> list[int | None]:
    """The timestamp of the oldest record in each partition."""
    page = await group.http.json(f"{GROUP_PATH}/partitions")
    return [one["oldest_record_timestamp_ms"] for one in page["partitions"]]


async def turns_of(group: WorkingGroup, path: str) -> int:
    """How often a task that is always ready runs during a request."""
    asking = asyncio.create_task(group.http.json(path))
    turns = 0
    while not asking.done():
        turns += 1
        await asyncio.sleep(0)
    await asking
    return turns
