"""The lag of a share group is known from the start on, without a fetch and without leaders in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.leader import idle_lags
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.sweep import lag_looks
from barnabas.share.sweep.lag_looks import LOOK_INTERVAL_MS, ROUND_INTERVAL_MS, LagLooks
from barnabas.share.sweep.sweep import SWEEP_INTERVAL_MS
from barnabas.storage.errors import LogOffline
from tests.conformance.conftest import make_stage
from tests.conformance.dead_lettering import use_dead_letters
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember
from tests.conformance.test_left_letters import held, remove_the_name

PARTITION_COUNT = 3
RECORDS_EACH = 5
DONE_EACH = 2

Load = Callable[[SharePartitionKey], Awaitable[SharePartitionLeader]]


def lags(lab: Lab) -> list[float]:
    """Of the partitions whose lag the metrics have."""
    name = "barnabas_share_lag_records{"
    return [value for key, value in lab.broker.metrics.snapshot().items() if key.startswith(name)]


async def loads() -> None:
    """Passes of the loop that are enough for all loads of a look."""
    for _ in range(PARTITION_COUNT + 1):
        await settle()


@asynccontextmanager
async def looking(lab: Lab, load: Load | None = None) -> AsyncGenerator[None]:
    """`load` is the broker's, unless a test has its own."""
    broker = lab.broker
    load = load or broker.fetch_source.load_leader
    looks = LagLooks(broker.clock, broker.deadlines, broker.groups.share, broker.share_partitions, load)
    looks.begin()
    await loads()
    yield
    await looks.close()


@asynccontextmanager
async def group_that_is_down(store: str = "log") -> AsyncGenerator[tuple[Lab, ShareMember]]:
    """The group has done a part of each partition. Then the broker was killed, and no consumer came back."""
    async with open_lab(share__state__store=store) as lab:
        topic_id = await lab.create_topic("t", PARTITION_COUNT)
        await lab.configure_group(GROUP, auto_offset_reset="earliest")
        partitions = [TopicIdPartition(topic_id, index) for index in range(PARTITION_COUNT)]
        for one in partitions:
            await lab.produce(topic_id, RECORDS_EACH, partition=one.partition)
        for one in partitions:
            member = ShareMember(lab.client(), [one], member_id=f"member-{one.partition}")
            await member.join("t")
            await member.take()
            await member.acknowledge([(0, DONE_EACH - 1, ACCEPT)])
        await lab.crash()
        yield lab, ShareMember(lab.client(), partitions, member_id="member-9")


@pytest.mark.parametrize("store", ["log", "topic"])
async def test_the_lag_is_known_after_a_kill_and_grows_with_the_log(store: str) -> None:
    async with group_that_is_down(store) as (lab, member):
        assert lags(lab) == []
        async with looking(lab):
            assert lags(lab) == [RECORDS_EACH - DONE_EACH] * PARTITION_COUNT
            assert not list(lab.broker.share_partitions)
            await lab.produce(member.partitions[0].topic_id, 7, partition=1)
            assert sorted(lags(lab)) == [3, 3, 10]


async def test_each_look_leads_a_limited_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_looks, "PARTITIONS_PER_LOOK_MAX", 1)
    async with group_that_is_down() as (lab, _), looking(lab):
        known = [len(lags(lab))]
        for _ in range(PARTITION_COUNT):
            await lab.advance(LOOK_INTERVAL_MS)
            known.append(len(lags(lab)))
    assert known == [1, 2, 3, 3]


async def test_without_room_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_lags, "IDLE_LAGS_MAX", 1)
    monkeypatch.setattr(lag_looks, "ROUND_INTERVAL_MS", SWEEP_INTERVAL_MS // 4)
    async with group_that_is_down() as (lab, _), looking(lab):
        await lab.advance(SWEEP_INTERVAL_MS // 2)  # the sweep would load the share-partitions, too
        assert len(lags(lab)) == 1
        assert lab.broker.share_partitions.counts.load_ms.count == 1


@pytest.mark.parametrize("with_letters", [False, True])
async def test_the_sweep_leads_none_again_for_its_letters(with_letters: bool) -> None:
    async with group_that_is_down() as (lab, _):
        if with_letters:
            await use_dead_letters(lab)
        async with looking(lab):
            loads_of_looks = lab.broker.share_partitions.counts.load_ms.count
            await lab.advance(3 * SWEEP_INTERVAL_MS)
            assert loads_of_looks == lab.broker.share_partitions.counts.load_ms.count == PARTITION_COUNT
            assert (lab.broker.sweep.next_deadline_ms() is not None) is with_letters


async def test_a_leader_with_letters_that_wait_stays_until_the_sweep_has_settled_them() -> None:
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await held(stage)
        await lab.crash()
        async with looking(lab):
            (leader,) = lab.broker.share_partitions
            assert not lab.broker.share_partitions.went_idle(leader.key)
            await remove_the_name(stage)
            await lab.advance(SWEEP_INTERVAL_MS)
            assert (await stage.offsets())[1] == 0


async def test_a_leader_that_a_member_uses_stays() -> None:
    async with group_that_is_down() as (lab, member):
        await member.join("t")
        await member.take(1)
        held = list(lab.broker.share_partitions)
        async with looking(lab):
            assert list(lab.broker.share_partitions) == held
            assert len(lags(lab)) == PARTITION_COUNT


async def test_a_state_that_cannot_be_read_is_tried_again_in_the_next_round() -> None:
    unreadable = {0}

    async def load(key: SharePartitionKey) -> SharePartitionLeader:
        if key.partition in unreadable:
            raise LogOffline("The disk is away.")
        return await lab.broker.fetch_source.load_leader(key)

    async with group_that_is_down() as (lab, _), looking(lab, load):
        assert len(lags(lab)) == PARTITION_COUNT - 1
        unreadable.clear()
        await lab.advance(ROUND_INTERVAL_MS)
        await loads()
        assert len(lags(lab)) == PARTITION_COUNT


async def test_a_reset_lag_is_known_again_after_a_round() -> None:
    async with group_that_is_down() as (lab, _), looking(lab):
        await lab.advance(60_000)  # the sessions of the members that are gone end
        asked = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 4}]}
        answer = await lab.admin.ask("alter_share_group_offsets", group_id=GROUP, topics=[asked])
        assert answer.error_code is ErrorCode.none, answer
        assert answer.responses[0].partitions[0].error_code is ErrorCode.none, answer
        await lab.advance(ROUND_INTERVAL_MS)
        await loads()
        assert sorted(lags(lab)) == [1, 3, 3]
