"""Groups of all types over HTTP."""

from __future__ import annotations

from tests.broker.http.api.working_group import working_group


async def test_a_share_group_is_shown_with_its_members() -> None:
    async with working_group(3) as group:
        shown = {"group_id": "group", "type": "share", "state": "stable", "protocol_type": "share"}
        assert await group.http.json("/api/v1/groups") == {"groups": [shown], "next_cursor": None}
        assert await group.http.json("/api/v1/groups/group") == shown
        [member] = (await group.http.json("/api/v1/groups/group/members"))["members"]
        assert (member["member_id"], member["client_id"]) == ("member-1", "worker")
        assert member["assignment"] == [{"topic": "t", "partitions": [0, 1]}]


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
        joined = await client.ask(
            "join_group",
            4,
            group_id="classic",
            session_timeout=10_000,
            rebalance_timeout=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        assert joined.member_id
        shown = await group.http.json("/api/v1/groups/classic")
        assert shown["type"] == "classic"
        members = (await group.http.json("/api/v1/groups/classic/members"))["members"]
        assert all(one["assignment"] is None for one in members)
