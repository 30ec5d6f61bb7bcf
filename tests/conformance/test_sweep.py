"""The sweep over share-partitions without a fetch: its costs, its bounds, and errors on its way."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.sweep import sweep
from barnabas.share.sweep.sweep import SWEEP_INTERVAL_MS
from tests.broker.quick_reopening import reopen_at_once
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import offsets_of_letters, use_dead_letters
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.share_member import GROUP, ShareMember
from tests.conformance.timed_records import Timed, produce_timed
from tests.conformance.transacting import Transacting

TTL_MS = 60_000
HOUR_MS = 3_600_000
IDLE_MS = 180_000


async def sweeps(lab: Lab, count: int = 1) -> None:
    for _ in range(count):
        await lab.advance(SWEEP_INTERVAL_MS)
        await settle()


async def test_a_broker_without_such_groups_has_no_sweep(stage: Stage) -> None:
    """Except for one after the start, which looks for letters that an earlier broker has left."""
    await stage.produce(1)
    await sweeps(stage.lab, 3)
    assert stage.lab.broker.sweep.next_deadline_ms() is None
    await stage.lab.configure_group(GROUP, record_ttl_ms=TTL_MS)
    assert stage.lab.broker.sweep.next_deadline_ms() is not None
    await stage.lab.configure_group(GROUP, record_ttl_ms=0)
    await sweeps(stage.lab)
    assert stage.lab.broker.sweep.next_deadline_ms() is None


@pytest.mark.parametrize("with_letters", [False, True])
async def test_a_leader_is_loaded_only_when_a_record_may_expire(stage: Stage, with_letters: bool) -> None:
    if with_letters:
        await use_dead_letters(stage.lab)
    await stage.lab.configure_group(GROUP, record_ttl_ms=HOUR_MS)
    member = stage.member()
    await member.take()
    await stage.produce(3)
    await member.leave_session()
    await sweeps(stage.lab)
    key = SharePartitionKey(GROUP, *stage.partition)
    leaders = stage.lab.broker.share_partitions
    await stage.lab.advance(IDLE_MS)
    assert leaders.in_memory(key) is None, "nothing brings it back"
    await stage.lab.advance(HOUR_MS)
    await sweeps(stage.lab)
    assert (await stage.offsets())[1] == 0


async def test_records_that_arrive_after_the_clock_was_set_back_expire_at_their_time(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, record_ttl_ms=HOUR_MS)
    member = stage.member()
    await member.take()
    await stage.produce(1)
    await member.leave_session()
    await sweeps(stage.lab)
    stage.lab.clock.wall_shift_ms = -10 * HOUR_MS
    await stage.produce(2)
    await stage.lab.advance(HOUR_MS)
    await sweeps(stage.lab)
    assert (await stage.offsets())[1] == 1, "the first record is from the future now"


async def test_one_sweep_looks_at_some_partitions_and_the_next_one_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "PARTITIONS_PER_SWEEP_MAX", 1)
    topic_id = await lab.create_topic("wide", 3)
    partitions = [TopicIdPartition(topic_id, index) for index in range(3)]
    await lab.configure_group(GROUP, auto_offset_reset="earliest", record_ttl_ms=TTL_MS)
    member = ShareMember(lab.client(), partitions)
    await member.join("wide")
    await member.take()
    await member.leave_session()
    for one in partitions:
        await lab.produce(topic_id, 4, partition=one.partition)
    lab.clock.now_ms += TTL_MS
    left: list[int] = []
    for _ in range(4):
        await sweeps(lab)
        left.append(sum([(await lab.offsets(GROUP, one))[1] for one in partitions]))
    assert left == sorted(left, reverse=True)
    assert left[0] > 0
    assert left[-1] == 0


async def test_an_error_of_one_partition_does_not_keep_the_others_from_expiring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sweep also opens the failed log again."""
    reopen_at_once(monkeypatch)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        other = TopicIdPartition(await lab.create_topic("other"), 0)
        await lab.configure_group(GROUP, record_ttl_ms=TTL_MS)
        member = ShareMember(lab.client(), [stage.partition, other], member_id="member-2")
        await member.join("t", "other")
        await member.take()
        await member.leave_session()
        await produce_timed(stage, [Timed(TTL_MS)] * 2)
        await produce_timed(stage._replace(partition=other), [Timed(TTL_MS)] * 2)
        with lab.broken_disk("t-0"):
            await sweeps(lab, 2)
        assert (await lab.offsets(GROUP, other))[1] == 0
        await sweeps(lab, 3)
        assert (await lab.offsets(GROUP, stage.partition))[1] == 0


async def test_records_behind_an_open_transaction_do_not_expire_before_it_ends(stage: Stage) -> None:
    """The group reads committed records only. The record of the aborted transaction gets no letter."""
    await use_dead_letters(stage.lab)
    await stage.lab.configure_group(GROUP, record_ttl_ms=TTL_MS // 2, isolation_level="read_committed")
    await stage.member().take()
    producer = Transacting(stage.lab.client())
    assert await producer.init() is ErrorCode.none
    assert await producer.write(records=1) is ErrorCode.none
    await stage.produce(2)
    await stage.lab.advance(TTL_MS // 2)
    await sweeps(stage.lab)
    assert await offsets_of_letters(stage.lab) == []
    await stage.lab.advance(TTL_MS)
    await sweeps(stage.lab, 3)
    assert await offsets_of_letters(stage.lab) == [1, 2]
    assert (await stage.offsets())[1] == 0
