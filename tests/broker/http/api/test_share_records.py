"""The records of share groups over HTTP: their states, the history of one, and changes."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.broker.http.api.working_group import LOCK_MS, RECORDS_PATH, working_group
from tests.conformance.harness import WALL_START_MS
from tests.conformance.share_member import ACCEPT, GROUP, REJECT, RELEASE, ShareMember

STORES = pytest.mark.parametrize("store", ["log", "topic"])


@STORES
async def test_each_state_is_shown_with_its_holder(store: str) -> None:
    async with working_group(1, 1, 1, 1, 1, 1, store=store) as group:
        await group.member.take(5)
        await group.member.acknowledge([(1, 1, ACCEPT), (2, 2, REJECT), (3, 3, RELEASE)])
        assert await group.ranges() == [
            (0, 0, "acquired"),
            (1, 1, "acknowledged"),
            (2, 2, "archived"),
            (3, 3, "available"),
            (4, 4, "acquired"),
            (5, 5, "new"),
        ]
        page = await group.http.json(RECORDS_PATH)
        assert (page["start_offset"], page["end_offset"], page["next_cursor"]) == (0, 5, None)
        held = page["ranges"][0]
        assert held["delivery_count"] == 1
        assert held["holder"] == {
            "member_id": "member-1",
            "client_id": "worker",
            "client_host": held["holder"]["client_host"],
            "acquired_ms": held["holder"]["lock_deadline_ms"] - LOCK_MS,
            "lock_deadline_ms": held["holder"]["lock_deadline_ms"],
            "lock_remaining_ms": LOCK_MS,
        }
        assert held["holder"]["lock_deadline_ms"] >= WALL_START_MS + LOCK_MS
        assert held["last_change"] is None
        cause = page["ranges"][1]["last_change"]["cause"]
        assert cause == ("accept" if store == "log" else "unknown")


async def test_known_priorities_and_due_times_are_shown() -> None:
    async with working_group(2) as group:
        await group.http.lab.configure_group(GROUP, priority_header="urgency", retry_backoff_ms=60_000)
        await group.member.take(2)
        await group.member.acknowledge([(1, 1, RELEASE)])
        page = await group.http.json(RECORDS_PATH)
        held, waiting = page["ranges"]
        assert (held["state"], held["priority"], held["due_ms"]) == ("acquired", 0, None)
        assert (waiting["wait"], waiting["priority"]) == ("due", 0)
        assert waiting["due_ms"] > WALL_START_MS


async def test_pages_of_records_follow_each_other() -> None:
    async with working_group(1, 1, 1) as group:
        await group.member.take(3)
        await group.member.acknowledge([(1, 1, RELEASE)])
        seen: list[int] = []
        query = "limit=1"
        while True:
            page = await group.http.json(f"{RECORDS_PATH}?{query}")
            seen += [one["first_offset"] for one in page["ranges"]]
            if page["next_cursor"] is None:
                break
            query = f"limit=1&cursor={page['next_cursor']}"
        assert seen == [0, 1, 2]
        from_two = await group.http.json(f"{RECORDS_PATH}?first_offset=2")
        assert [one["first_offset"] for one in from_two["ranges"]] == [2]


async def test_records_are_chosen_by_their_states() -> None:
    async with working_group(1, 1, 1, 1, 1) as group:
        await group.member.take(4)
        await group.member.acknowledge([(0, 0, ACCEPT), (2, 2, RELEASE)])
        for query, offsets in (
            ("state=acquired", [1, 3]),
            ("state=available&state=new", [2, 4]),
            ("state=acknowledged&first_offset=0", [0]),
            ("state=passed&first_offset=0", []),
        ):
            page = await group.http.json(f"{RECORDS_PATH}?{query}")
            assert [one["first_offset"] for one in page["ranges"]] == offsets, query
        first = await group.http.json(f"{RECORDS_PATH}?state=acquired&limit=1")
        assert [one["first_offset"] for one in first["ranges"]] == [1]
        rest = await group.http.json(f"{RECORDS_PATH}?state=acquired&cursor={first['next_cursor']}")
        assert [one["first_offset"] for one in rest["ranges"]] == [3]
        refused = await group.http.get(f"{RECORDS_PATH}?state=locked")
        assert refused.status_code == 400
        assert "locked" in refused.json()["detail"]


async def test_a_delayed_record_has_the_time_when_it_is_due() -> None:
    async with working_group(1, 1) as group:
        await group.http.lab.configure_group("group", retry_backoff_ms=5_000, retry_backoff_jitter=0)
        await group.member.take(1)
        await group.member.acknowledge([(0, 0, RELEASE)])
        released, new = (await group.http.json(RECORDS_PATH))["ranges"]
        assert (released["state"], released["wait"]) == ("available", "due")
        assert released["due_ms"] == released["last_change"]["timestamp_ms"] + 5_000
        assert (new["wait"], new["due_ms"]) == (None, None)


async def test_a_new_record_is_due_after_the_delay_of_its_group() -> None:
    async with working_group() as group:
        await group.http.lab.configure_group("group", delivery_delay_ms=60_000)
        await group.http.lab.produce(group.partition.topic_id, 1)
        await group.member.fetch(max_records=10)
        (new,) = (await group.http.json(RECORDS_PATH))["ranges"]
        assert (new["state"], new["wait"]) == ("new", "due")
        assert new["due_ms"] >= WALL_START_MS + 60_000


async def test_the_history_of_a_record_has_every_recorded_change() -> None:
    async with working_group(3) as group:
        for _ in range(2):
            await group.member.take(3)
            await group.member.acknowledge([(0, 2, RELEASE)])
        await group.member.take(3)
        await group.member.acknowledge([(1, 1, ACCEPT)])
        history = await group.history(1)
        assert [(one["cause"], one["state"], one["delivery_count"]) for one in history["changes"]] == [
            ("accept", "acknowledged", 3),
            ("release", "available", 2),
            ("release", "available", 1),
        ]
        assert {one["member_id"] for one in history["changes"]} == {"member-1"}
        assert history["record"]["state"] == "acknowledged"
        assert (history["source"], history["is_complete"], history["next_cursor"]) == ("log", True, None)
        assert history["changes"][0]["control_offset"] > history["changes"][1]["control_offset"]


async def test_a_history_comes_in_pages() -> None:
    async with working_group(2) as group:
        for _ in range(3):
            await group.member.take(2)
            await group.member.acknowledge([(0, 1, RELEASE)])
        offsets: list[int] = []
        cursor, pages = "", 0
        while True:
            page = await group.history(0, f"?limit=2&cursor={cursor}")
            offsets += [one["control_offset"] for one in page["changes"]]
            pages += 1
            if page["next_cursor"] is None:
                break
            assert not page["is_complete"]
            cursor = page["next_cursor"]
        assert (len(offsets), pages) == (3, 2)
        assert sorted(offsets, reverse=True) == offsets
        assert page["is_complete"]


async def test_an_expired_lock_is_in_the_history() -> None:
    async with working_group(1) as group:
        await group.member.take(1)
        await group.http.lab.advance(LOCK_MS + 1_000)
        assert [one["cause"] for one in (await group.history(0))["changes"]] == ["lock expired"]


async def test_the_topic_store_keeps_no_history() -> None:
    async with working_group(1, store="topic") as group:
        await group.member.take(1)
        await group.member.acknowledge([(0, 0, RELEASE)])
        history = await group.history(0)
        assert (history["source"], history["changes"], history["is_complete"]) == ("none", [], False)
        assert history["record"]["state"] == "available"


async def test_a_reset_begins_a_new_history() -> None:
    async with working_group(2) as group:
        await group.member.take(2)
        await group.member.acknowledge([(0, 1, RELEASE)])
        await group.member.leave_session()
        await group.member.heartbeat(-1)
        assert (await group.http.change("DELETE", "/api/v1/groups/group")).status_code == 204
        member = ShareMember(group.http.lab.client(), [group.partition], member_id="member-2")
        await member.join("t")
        assert await member.take(2) == [(0, 1, 1)]
        history = await group.history(0)
        assert (history["changes"], history["is_complete"]) == ([], True)


async def test_an_administrator_releases_and_archives_records() -> None:
    async with working_group(4) as group:
        await group.member.take(4)
        released = await group.http.change("POST", f"{RECORDS_PATH}/release", {"first_offset": 0})
        assert (released.status_code, released.json()) == (200, {"record_count": 1})
        archived = await group.http.change(
            "POST", f"{RECORDS_PATH}/archive", {"first_offset": 2, "last_offset": 3}
        )
        assert archived.json() == {"record_count": 2}
        assert await group.ranges() == [(0, 0, "available"), (1, 1, "acquired"), (2, 3, "archived")]
        assert [one["cause"] for one in (await group.history(2))["changes"]] == ["admin"]


async def test_the_log_of_the_broker_names_the_client_and_the_records_that_it_changes() -> None:
    async with working_group(4) as group:
        await group.member.take(4)
        with capture_logs() as lines:
            await group.http.change("POST", f"{RECORDS_PATH}/archive", {"first_offset": 2, "last_offset": 3})
    (line,) = [one for one in lines if one["event"] == "a client of HTTP changes records of a share group"]
    assert (line["action"], line["group"], line["partition"]) == ("archive", GROUP, "t-0")
    assert (line["first_offset"], line["last_offset"], line["client"]) == (2, 3, "192.0.2.1")


async def test_a_change_that_is_not_possible_changes_nothing_and_says_why() -> None:
    async with working_group(3) as group:
        await group.member.take(3)
        await group.member.acknowledge([(0, 0, RELEASE)])
        for verb, body, status in (
            ("release", {"first_offset": 0}, 409),
            ("archive", {"first_offset": 0, "last_offset": 9}, 409),
            ("dead-letter", {"first_offset": 1}, 400),
            ("archive", {"first_offset": 2, "last_offset": 1}, 400),
            ("archive", {"first_offset": -1}, 422),
            ("archive", {}, 422),
        ):
            response = await group.http.change("POST", f"{RECORDS_PATH}/{verb}", body)
            assert (verb, response.status_code) == (verb, status), response.text
            assert response.json()["detail"]
        assert await group.ranges() == [(0, 0, "available"), (1, 2, "acquired")]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/share-groups/nothing/topics/t/partitions/0/records", 404),
        ("/api/v1/share-groups/group/topics/nothing/partitions/0/records", 404),
        ("/api/v1/share-groups/group/topics/t/partitions/7/records", 404),
        ("/api/v1/share-groups/group/topics/t/partitions/x/records", 400),
        (f"{RECORDS_PATH}/99/history", 404),
        (f"{RECORDS_PATH}/x/history", 400),
        (f"{RECORDS_PATH}?first_offset=-5", 400),
    ],
)
async def test_a_wrong_place_is_refused(path: str, status: int) -> None:
    async with working_group(1) as group:
        response = await group.http.get(path)
        assert response.status_code == status, response.text
