"""The records that may need a person, over all share groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.broker.http.api import stuck_records
from barnabas.broker.http.api.stuck_records import HELD_MS
from barnabas.protocol.identity import TopicIdPartition
from tests.broker.http.api.working_group import WorkingGroup, working_group
from tests.conformance.acknowledging_in_transactions import acknowledge, initialised
from tests.conformance.share_member import ACCEPT, RELEASE, RENEW, ShareMember
from tests.conformance.test_share_version import set_share_version
from tests.conformance.transacting import OK

PATH = "/api/v1/stuck-records"
STORES = pytest.mark.parametrize("store", ["log", "topic"])


async def stuck(group: WorkingGroup, query: str = "") -> list[tuple[str, int, int, int, str]]:
    """All pages, as (group, partition, first offset, last offset, state)."""
    found: list[tuple[str, int, int, int, str]] = []
    cursor = ""
    while True:
        page = await group.http.json(f"{PATH}?cursor={cursor}&{query}")
        assert page["unreadable"] == []
        found += [place_of(one) for one in page["records"]]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


def place_of(one: Any) -> tuple[str, int, int, int, str]:
    records = one["range"]
    place = (one["group_id"], one["partition"])
    return (*place, records["first_offset"], records["last_offset"], records["state"])


async def second_group(group: WorkingGroup, partitions: Sequence[TopicIdPartition]) -> ShareMember:
    """Another group of the topic, with a colon in its name."""
    lab = group.http.lab
    await lab.configure_group("a:group", auto_offset_reset="earliest")
    member = ShareMember(lab.client(), partitions, group_id="a:group", member_id="member-2")
    await member.join("t")
    await member.fetch(max_records=0)
    await lab.advance(0)
    return member


@STORES
async def test_records_that_were_delivered_in_vain_are_stuck_until_they_are_final(store: str) -> None:
    async with working_group(1, 1, 1, 1, store=store) as group:
        await group.member.take(3)
        assert await stuck(group) == []
        await group.member.acknowledge([(0, 0, ACCEPT), (1, 2, RELEASE)])
        assert await stuck(group) == [("group", 0, 1, 2, "available")]
        await group.member.take(1)
        assert await stuck(group) == [("group", 0, 1, 2, "acquired")]
        await group.member.acknowledge([(1, 1, ACCEPT)])
        assert await stuck(group) == [("group", 0, 2, 2, "acquired")]


async def test_the_least_number_of_failed_deliveries_can_be_chosen() -> None:
    async with working_group(1, 1) as group:
        await group.member.take(2)
        await group.member.acknowledge([(0, 1, RELEASE)])
        await group.member.take(1)
        await group.member.acknowledge([(0, 0, RELEASE)])
        assert await stuck(group, "failed_deliveries=2") == [("group", 0, 0, 0, "available")]
        assert await stuck(group, "failed_deliveries=3") == []


async def test_a_record_that_a_member_has_held_for_minutes_is_stuck() -> None:
    async with working_group(1, 1) as group:
        await group.member.take(2)
        await group.member.acknowledge([(1, 1, ACCEPT)])
        for _ in range(30):
            await group.http.lab.advance(10_000)
            await group.member.acknowledge([(0, 0, RENEW)], renew=True)
        assert await stuck(group, "held_ms=300001") == []
        assert await stuck(group) == [("group", 0, 0, 0, "acquired")]
        await group.member.acknowledge([(0, 0, ACCEPT)])
        assert await stuck(group) == []


async def test_a_record_in_a_transaction_is_held_by_no_member() -> None:
    async with working_group(1) as group:
        lab = group.http.lab
        await lab.advance(HELD_MS)
        await group.member.take(1)
        producer = await initialised(lab.client("producer"))
        assert await acknowledge(lab.client("worker"), group.member, producer, 0, 0, ACCEPT) is OK
        assert [one[2] for one in await group.ranges()] == ["acquired"]
        assert await stuck(group) == []


async def test_the_last_change_says_why() -> None:
    async with working_group(1) as group:
        await group.member.take(1)
        await group.member.acknowledge([(0, 0, RELEASE)])
        [found] = (await group.http.json(PATH))["records"]
        assert found["topic"] == "t"
        assert found["range"]["delivery_count"] == 1
        assert found["range"]["last_change"]["cause"] == "release"


async def test_pages_go_on_within_a_partition_and_over_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_records, "PARTITIONS_MAX", 1)
    async with working_group(1, 1, 1) as group:
        other = await second_group(group, [group.partition])
        for member in (other, group.member):
            await member.take(3)
            await member.acknowledge([(0, 0, RELEASE), (2, 2, RELEASE)])
        expected = [
            (group_id, 0, offset, offset, "available")
            for group_id in ("a:group", "group")
            for offset in (0, 2)
        ]
        assert await stuck(group, "limit=1") == expected
        assert await stuck(group, "limit=2") == expected
        assert await stuck(group) == expected
        assert await stuck(group, "group=group") == expected[2:]
        assert await stuck(group, "group=group&group=a:group&limit=1") == expected


async def test_a_list_of_all_groups_is_refused_while_groups_are_being_loaded() -> None:
    async with working_group(1) as group:
        groups = group.http.lab.broker.groups
        partition = groups.operations.partition_of("group")
        for unloaded in (partition, (partition + 1) % groups.operations.partition_count):
            groups.unload(unloaded)
            response = await group.http.get(PATH)
            assert response.status_code == 503
            assert response.json()["kafka_error"] == "COORDINATOR_LOAD_IN_PROGRESS"


async def test_a_group_is_listed_while_others_are_being_loaded() -> None:
    async with working_group(1) as group:
        groups = group.http.lab.broker.groups
        groups.unload((groups.operations.partition_of("group") + 1) % groups.operations.partition_count)
        assert await stuck(group, "group=group") == []


async def test_the_list_is_refused_while_share_groups_are_disabled() -> None:
    async with working_group(1) as group:
        await set_share_version(group.http.lab, 0)
        for query in ("", "group=group"):
            response = await group.http.get(f"{PATH}?{query}")
            assert response.status_code == 409
            assert response.json()["kafka_error"] == "UNSUPPORTED_VERSION"


async def test_a_wrong_group_or_cursor_is_refused() -> None:
    async with working_group(1) as group:
        for query, status in (
            ("group=nothing", 404),
            ("cursor=nothing", 400),
            ("cursor=x:0:t:group", 400),
            ("failed_deliveries=0", 400),
        ):
            response = await group.http.get(f"{PATH}?{query}")
            assert (query, response.status_code) == (query, status)
