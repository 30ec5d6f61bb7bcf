"""The progress of share groups over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from tests.broker.http.api.working_group import GROUP_PATH, WorkingGroup, working_group
from tests.conformance.share_member import ACCEPT

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
            "oldest_record_age_ms": 0,
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


async def test_the_age_of_the_oldest_record_is_that_of_the_record_at_the_start_offset() -> None:
    async with working_group(1) as group:
        lab = group.http.lab
        await lab.advance(1_000)
        await lab.produce(group.partition.topic_id, 1)
        await group.member.take(2)
        await lab.advance(500)
        assert await ages_of(group) == [1_500, 0]
        await group.member.accept(0, 0)
        assert await ages_of(group) == [500, 0]
        await lab.delete_records("t", 2)
        assert await ages_of(group) == [0, 0]


async def test_a_group_that_has_not_begun_has_no_age() -> None:
    async with working_group(1) as group:
        assert await ages_of(group) == [None, None]


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


async def ages_of(group: WorkingGroup) -> list[int | None]:
    """The age of the oldest record in each partition."""
    page = await group.http.json(f"{GROUP_PATH}/partitions")
    return [one["oldest_record_age_ms"] for one in page["partitions"]]


async def turns_of(group: WorkingGroup, path: str) -> int:
    """How often a task that is always ready runs during a request."""
    asking = asyncio.create_task(group.http.json(path))
    turns = 0
    while not asking.done():
        turns += 1
        await asyncio.sleep(0)
    await asking
    return turns
