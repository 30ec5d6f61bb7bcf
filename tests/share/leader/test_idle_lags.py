"""The lag of a share group stays known when its leaders leave the memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from barnabas.share.leader import idle_lags
from tests.broker.http.api.working_group import WorkingGroup, working_group
from tests.conformance.share_member import ACCEPT

IDLE_MS = 300_000
NAME = "barnabas_share_lag_records{group=group,partition=0,topic=t}"


def lag(group: WorkingGroup) -> float | None:
    return group.http.lab.broker.metrics.snapshot().get(NAME)


@asynccontextmanager
async def idle_group(store: str = "log") -> AsyncGenerator[WorkingGroup]:
    """A group that has accepted two of five records, and has no leader in memory any more."""
    async with working_group(5, store=store) as group:
        await group.member.take(5)
        await group.member.acknowledge([(0, 0, ACCEPT), (3, 3, ACCEPT)])
        await group.member.leave_session()
        await group.http.lab.advance(IDLE_MS)
        assert not list(group.http.lab.broker.share_partitions)
        yield group


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_the_lag_of_an_idle_group_grows_with_the_log(store: str) -> None:
    async with idle_group(store) as group:
        assert lag(group) == 3
        await group.http.lab.produce(group.partition.topic_id, 4)
        assert lag(group) == 7


@pytest.mark.parametrize(("log_start_offset", "expected"), [(0, 3), (1, 3), (2, 2), (3, 1), (4, 1), (5, 0)])
async def test_records_below_the_log_start_are_no_lag(log_start_offset: int, expected: int) -> None:
    async with idle_group() as group:
        await group.http.lab.delete_records("t", log_start_offset)
        assert lag(group) == expected
        await group.http.lab.produce(group.partition.topic_id, 4)
        assert lag(group) == expected + 4


async def test_a_loaded_leader_takes_its_place() -> None:
    async with idle_group() as group:
        await group.http.json("/api/v1/share-groups/group/lag")
        assert lag(group) == 3
        assert not list(group.http.lab.broker.share_partitions.idle_lags)


async def test_a_deleted_topic_and_a_deleted_group_have_no_lag() -> None:
    async with idle_group() as group:
        await group.http.lab.delete_topic("t")
        assert lag(group) is None
    async with idle_group() as group:
        await group.member.heartbeat(-1)
        assert (await group.http.change("DELETE", "/api/v1/groups/group")).status_code == 204
        assert lag(group) is None


async def test_a_group_that_has_not_begun_has_no_lag() -> None:
    async with working_group(5) as group:
        assert lag(group) is None


async def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_lags, "IDLE_LAGS_MAX", 0)
    async with idle_group() as group:
        assert lag(group) is None
