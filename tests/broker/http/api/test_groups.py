"""Groups of all types over HTTP."""

from __future__ import annotations

from barnabas.broker.http.api.groups import ENTRIES_PER_TURN
from tests.broker.http.api.working_group import working_group
from tests.conformance.share_member import ShareMember


async def test_a_share_group_is_shown_with_its_members() -> None:
    async with working_group(3) as group:
        shown = {
            "group_id": "group",
            "type": "share",
            "state": "stable",
            "protocol_type": "share",
            "member_count": 1,
            "lag": None,
        }
        assert await group.http.json("/api/v1/groups") == {"groups": [shown], "next_cursor": None}
        assert await group.http.json("/api/v1/groups/group") == shown
        [member] = (await group.http.json("/api/v1/groups/group/members"))["members"]
        assert (member["member_id"], member["client_id"]) == ("member-1", "worker")
        assert member["assignment"] == [{"topic": "t", "partitions": [0, 1]}]


async def test_the_lag_of_a_share_group_is_listed_without_loading_it() -> None:
    async with working_group(3) as group:

        async def lag() -> int | None:
            [listed] = (await group.http.json("/api/v1/groups"))["groups"]
            assert listed == await group.http.json("/api/v1/groups/group")
            found: int | None = listed["lag"]
            return found

        leaders = group.http.lab.broker.share_partitions
        assert (await lag(), list(leaders)) == (None, [])
        await group.http.lab.produce(group.partition.topic_id, 2, partition=1)
        await group.member.take(5)
        await group.member.accept(0, 0)
        assert await lag() == 4
        await group.member.leave_session()
        await group.http.lab.advance(300_000)
        await group.http.lab.produce(group.partition.topic_id, 10)
        assert (await lag(), list(leaders)) == (14, [])


async def test_the_lags_of_many_groups_leave_turns_to_others() -> None:
    async with working_group(3) as group:
        for number in range(ENTRIES_PER_TURN + 1):
            other = ShareMember(
                group.http.lab.client(), [group.partition], group_id=f"group-{number:03}", member_id="m"
            )
            await other.join("t")
        page = await group.http.json("/api/v1/groups?limit=1000")
        assert [one["member_count"] for one in page["groups"]] == [1] * (ENTRIES_PER_TURN + 2)


async def test_groups_are_filtered_by_type_and_state() -> None:
    async with working_group(3) as group:
        for query, ids in (
            ("type=share", ["group"]),
            ("type=consumer&type=classic", []),
            ("type=share&state=stable", ["group"]),
            ("state=empty", []),
        ):
            page = await group.http.json(f"/api/v1/groups?{query}")
            assert [one["group_id"] for one in page["groups"]] == ids
        assert (await group.http.get("/api/v1/groups?type=other")).status_code == 400


async def test_an_unknown_group_is_not_found() -> None:
    async with working_group(3) as group:
        for path in ("/api/v1/groups/nothing", "/api/v1/groups/nothing/members"):
            response = await group.http.get(path)
            assert (response.status_code, response.json()["kafka_error"]) == (404, "GROUP_ID_NOT_FOUND")


async def test_a_group_with_members_cannot_be_deleted_and_an_empty_one_can() -> None:
    async with working_group(3) as group:
        response = await group.http.change("DELETE", "/api/v1/groups/group")
        assert (response.status_code, response.json()["kafka_error"]) == (409, "NON_EMPTY_GROUP")
        await group.member.heartbeat(-1)
        assert (await group.http.change("DELETE", "/api/v1/groups/group")).status_code == 204
        assert (await group.http.get("/api/v1/groups/group")).status_code == 404


async def test_a_classic_group_has_members_without_readable_assignments() -> None:
    async with working_group(3) as group:
        client = group.http.lab.client("old")
        joining = client.send(
            "join_group",
            3,
            group_id="classic",
            session_timeout=10_000,
            rebalance_timeout=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        await group.http.lab.advance(3_000)  # group.initial.rebalance.delay.ms
        joined = await group.http.lab.answered(joining)
        shown = await group.http.json("/api/v1/groups/classic")
        assert (shown["type"], shown["member_count"], shown["lag"]) == ("classic", 1, None)
        members = (await group.http.json("/api/v1/groups/classic/members"))["members"]
        assert [(one["member_id"], one["assignment"]) for one in members] == [(joined.member_id, None)]
