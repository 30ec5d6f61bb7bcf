"""Which leaders there are: loading, forgetting, following the log, and segments that must be let go."""

from __future__ import annotations

import pytest

from barnabas.broker.leader.share_partition_leader import SharePartitionLeader
from barnabas.protocol.control_record import ShareCheckpoint
from barnabas.storage.append import Append
from barnabas.storage.log_config import LogConfig
from tests.broker.edge_fakes import settle
from tests.broker.leader.leading import LOCK_MS, PARTITION, Leading, acknowledge, leading
from tests.storage.log_building import COLLIDING, NOW_MS, append

SMALL_SEGMENTS = LogConfig(segment_bytes=400, retention_ms=1000)


async def test_a_leader_is_loaded_once_and_found_from_then_on() -> None:
    stage = await leading()
    key = stage.key()
    assert stage.share_partitions.get(key) is None
    leader = stage.share_partitions.lead(key, stage.log)
    assert stage.share_partitions.lead(key, stage.log) is leader
    assert stage.share_partitions.get(key) is leader
    assert list(stage.share_partitions) == [leader]


async def test_a_group_that_has_recorded_nothing_is_undecided_at_its_epoch() -> None:
    stage = await leading()
    leader = stage.share_partitions.lead(stage.key(), stage.log)
    assert not leader.core.is_initialised
    assert (leader.image.state_epoch, leader.image.group_incarnation) == (7, 1)
    assert leader.lag() == -1


async def test_a_forgotten_leader_is_closed_and_another_is_loaded() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    stage.share_partitions.forget(stage.key())
    assert leader.closed
    assert leader.next_deadline_ms() is None
    stage.timers.advance(LOCK_MS)
    another = stage.lead()
    assert another is not leader
    assert stage.fetch(another).acquired == [(0, 1, 1)], "the lock of the forgotten one means nothing"


async def test_forgetting_what_is_not_led_does_nothing() -> None:
    stage = await leading()
    stage.share_partitions.forget(stage.key())
    stage.share_partitions.forget_topic(PARTITION.topic_id, 3)
    assert list(stage.share_partitions) == []


async def test_with_its_topic_all_groups_leaders_go() -> None:
    stage = await leading()
    leaders = [stage.lead("group"), stage.lead("other")]
    store = stage.share_partitions.store(PARTITION, stage.log)
    stage.share_partitions.forget_topic(PARTITION.topic_id, 1)
    assert [leader.closed for leader in leaders] == [True, True]
    assert list(stage.share_partitions) == []
    assert stage.share_partitions.store(PARTITION, stage.log) is not store


async def test_locks_expire_by_the_brokers_deadlines() -> None:
    stage = await leading()
    stage.produce(2)
    leader = stage.lead()
    stage.fetch(leader)
    assert stage.fetch(leader, member_id="other").acquired == ()
    stage.timers.advance(LOCK_MS)
    assert stage.fetch(leader, member_id="other").acquired == [(0, 1, 2)]


async def test_leaders_follow_the_log_start() -> None:
    stage = await leading()
    stage.produce(4)
    one, other = stage.lead("group"), stage.lead("other")
    stage.fetch(other)
    acknowledge(other, 0, 3)
    stage.log.delete_records(2)
    assert (one.core.spso, other.core.spso) == (2, 4)
    newest = stage.records("group")[-1][1]
    assert isinstance(newest, ShareCheckpoint)
    assert newest.start_offset == 2


async def test_a_leader_that_is_loaded_later_follows_it_as_well() -> None:
    stage = await leading()
    stage.produce(4)
    stage.lead()
    stage.share_partitions.forget(stage.key())
    stage.log.delete_records(3)
    assert stage.lead().core.spso == 3


async def test_a_reset_under_way_holds_the_leader_back_until_the_latest_has_ended() -> None:
    stage = await leading()
    leader = stage.lead()
    first, second = Append(), Append()
    stage.share_partitions.hold_back(stage.key(), first)
    assert leader.closed
    stage.share_partitions.hold_back(stage.key(), second)
    first.complete()
    assert stage.share_partitions.reset_under_way(stage.key()) is second
    second.complete()
    assert stage.share_partitions.reset_under_way(stage.key()) is None


class TestPinnedSegments:
    async def stage(self) -> Leading:
        """Segments of a batch or two, the first of which hold the beginning of the group."""
        stage = await leading(config=SMALL_SEGMENTS)
        stage.log.pin_listeners.append(
            lambda log, group_ids: stage.share_partitions.log_pinned(PARTITION, log, group_ids)
        )
        return stage

    async def begun(
        self, group_id: str = "group", incarnations: dict[str, int] | None = None
    ) -> tuple[Leading, SharePartitionLeader]:
        stage = await self.stage()
        stage.groups.incarnations = incarnations or stage.groups.incarnations
        leader = stage.lead(group_id)
        for _ in range(8):
            append(stage.log, 1, value=b"v" * 150)
        assert stage.log.segment_count > 3
        return stage, leader

    async def test_an_idle_group_is_checkpointed_anew_and_lets_them_go(self) -> None:
        stage, leader = await self.begun()
        await stage.log.enforce_retention(NOW_MS + 10_000)
        checkpoint = stage.records()[-1][1]
        assert isinstance(checkpoint, ShareCheckpoint)
        assert leader.image.checkpoint_epoch >= 2
        await stage.log.enforce_retention(NOW_MS + 10_000)
        assert stage.log.log_start_offset >= 8
        assert leader.core.spso == stage.log.log_start_offset

    async def test_a_group_without_a_leader_is_loaded_for_it(self) -> None:
        stage, _ = await self.begun()
        stage.share_partitions.forget(stage.key())
        await stage.log.enforce_retention(NOW_MS + 10_000)
        await stage.log.enforce_retention(NOW_MS + 10_000)
        assert stage.log.log_start_offset >= 8
        assert stage.share_partitions.get(stage.key()) is not None

    async def test_the_state_of_a_group_that_is_gone_ends(self) -> None:
        stage, _ = await self.begun()
        stage.share_partitions.forget(stage.key())
        del stage.groups.incarnations["group"]
        await stage.log.enforce_retention(NOW_MS + 10_000)
        newest = stage.records()[-1][1]
        assert isinstance(newest, ShareCheckpoint)
        assert newest.deleted
        await stage.log.enforce_retention(NOW_MS + 10_000)
        assert stage.log.log_start_offset >= 8

    async def test_state_that_is_being_reset_is_left_alone(self) -> None:
        stage, _ = await self.begun()
        stage.share_partitions.hold_back(stage.key(), Append())
        before = len(stage.records())
        stage.share_partitions.log_pinned(PARTITION, stage.log, ["group"])
        assert len(stage.records()) == before
        assert stage.share_partitions.get(stage.key()) is None

    @pytest.mark.parametrize(("idle", "busy"), [COLLIDING, COLLIDING[::-1]])
    @pytest.mark.parametrize("busy_is_gone", [False, True])
    async def test_group_keeps_its_state_beside_another_of_the_same_hash(
        self, idle: str, busy: str, busy_is_gone: bool
    ) -> None:
        stage = await self.stage()
        stage.groups.incarnations = {idle: 1, busy: 2}
        append(stage.log, 1)
        leader = stage.lead(idle)
        stage.fetch(leader)
        acknowledge(leader, 0, 0)
        stage.share_partitions.forget(stage.key(idle))
        for _ in range(8):
            append(stage.log, 1, value=b"v" * 150)
        image = stage.lead(busy).image
        if busy_is_gone:
            stage.share_partitions.forget(stage.key(busy))
            stage.share_partitions.store(PARTITION, stage.log).reset(busy, image, deleted=True)
        await stage.log.enforce_retention(NOW_MS + 10_000)
        stage.share_partitions.forget(stage.key(idle))
        assert stage.share_partitions.store(PARTITION, stage.log).load(idle, 1) is not None
        await stage.log.enforce_retention(NOW_MS + 10_000)
        assert stage.log.log_start_offset >= 8
        assert stage.share_partitions.store(PARTITION, stage.log).load(idle, 1) is not None

    async def test_group_that_is_gone_ends_beside_another_of_the_same_hash(self) -> None:
        stage, _ = await self.begun(gone := COLLIDING[0], {COLLIDING[0]: 1, COLLIDING[1]: 1})
        stage.lead(COLLIDING[1])
        stage.share_partitions.forget(stage.key(gone))
        del stage.groups.incarnations[gone]
        await stage.log.enforce_retention(NOW_MS + 10_000)
        newest = [record for _, record in stage.records(gone) if record.group_id == gone][-1]
        assert isinstance(newest, ShareCheckpoint)
        assert newest.deleted

    async def test_groups_without_state_get_none(self) -> None:
        stage = await leading()
        stage.share_partitions.log_pinned(PARTITION, stage.log, ["group", "nobody"])
        await settle()
        assert stage.log.log_end_offset == 0
