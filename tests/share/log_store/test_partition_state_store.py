"""Share state as control records: chains of deltas, checkpoints, loading, and writes that fail."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from barnabas.protocol.control_record import ShareCheckpoint, ShareDelta
from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.log_store import state_append
from barnabas.storage.errors import LogOffline
from barnabas.storage.log_config import FlushPolicy
from tests.broker.network.edge_fakes import settle
from tests.share.leader.leading import RELEASE, Leading, acknowledge, leading

ACKNOWLEDGED = RecordState.ACKNOWLEDGED


def shapes(stage: Leading, group_id: str = "group") -> list[str]:
    """Each record as `C<checkpoint epoch>` or `D<checkpoint epoch><-back offset`, with its offset."""
    return [
        f"{offset}:C{record.checkpoint_epoch}"
        if isinstance(record, ShareCheckpoint)
        else f"{offset}:D{record.checkpoint_epoch}<-{record.back_offset}"
        for offset, record in stage.records(group_id)
    ]


async def fetched(record_count: int, **options: Any) -> tuple[Leading, SharePartitionLeader]:
    """A leader whose member holds these records."""
    stage = await leading(**options)
    stage.produce(record_count)
    leader = stage.lead()
    stage.fetch(leader)
    return stage, leader


async def test_beginning_is_a_checkpoint_and_each_acknowledgement_a_delta_that_chains_to_the_one_before() -> (
    None
):
    stage, leader = await fetched(4)
    for offset in (0, 2, 3):
        assert acknowledge(leader, offset, offset).done
    assert shapes(stage) == ["4:C1", "5:D1<-4", "6:D1<-5", "7:D1<-6"]


async def test_a_chain_ends_in_a_checkpoint_after_as_many_deltas_as_are_allowed() -> None:
    stage, leader = await fetched(6, deltas_per_checkpoint=2)
    for offset in range(1, 6):
        acknowledge(leader, offset, offset)
    assert shapes(stage) == ["6:C1", "7:D1<-6", "8:D1<-7", "9:C2", "10:D2<-9", "11:D2<-10"]
    checkpoint = stage.records()[3][1]
    assert isinstance(checkpoint, ShareCheckpoint)
    assert (checkpoint.start_offset, checkpoint.end_offset, checkpoint.delivery_complete_count) == (0, 4, 3)


async def test_a_chain_ends_in_a_checkpoint_after_as_many_bytes_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, leader = await fetched(8)
    before_bytes = stage.log.size_bytes
    acknowledge(leader, 1, 1)
    assert leader.image.delta_bytes == stage.log.size_bytes - before_bytes
    acknowledge(leader, 2, 2)
    delta_bytes = stage.log.size_bytes - before_bytes
    monkeypatch.setattr(state_append, "DELTA_BYTES_PER_CHECKPOINT", delta_bytes)
    stage.share_partitions.forget(leader.key)
    again = stage.lead()
    assert again.image.delta_bytes == delta_bytes
    stage.fetch(again)
    acknowledge(again, 3, 3)
    assert again.image.delta_bytes == 0
    assert shapes(stage) == ["8:C1", "9:D1<-8", "10:D1<-9", "11:C2"]


async def test_without_deltas_each_record_is_a_checkpoint() -> None:
    stage, leader = await fetched(2, deltas_per_checkpoint=0)
    acknowledge(leader, 0, 0)
    assert shapes(stage) == ["2:C1", "3:C2"]


async def test_acquiring_records_nothing() -> None:
    stage = await leading()
    stage.produce(4)
    leader = stage.lead()
    end_offset = stage.log.log_end_offset
    assert stage.fetch(leader).record_count == 4
    assert stage.log.log_end_offset == end_offset


async def test_decisions_during_a_write_share_the_next_one() -> None:
    stage = await leading(flush=FlushPolicy.ALWAYS)
    stage.produce(6)
    await settle()
    leader = stage.lead()
    await settle()
    stage.fetch(leader)
    stage.filesystem.hold()
    tickets = [acknowledge(leader, offset, offset) for offset in (0, 1, 3)]
    await settle()
    assert not any(ticket.done for ticket in tickets)
    assert tickets[1] is tickets[2]
    stage.filesystem.release()
    await settle()
    assert all(ticket.done and ticket.error is None for ticket in tickets)
    assert shapes(stage) == ["6:C1", "7:D1<-6", "8:D1<-7"]
    merged = stage.records()[2][1]
    assert isinstance(merged, ShareDelta)
    # The second delta also has the range between: acquired, and therefore recorded as available and never
    # delivered.
    assert [(one.base_offset, one.last_offset, one.state, one.delivery_count) for one in merged.states] == [
        (1, 1, ACKNOWLEDGED, 1),
        (2, 2, RecordState.AVAILABLE, 0),
        (3, 3, ACKNOWLEDGED, 1),
    ]


async def test_several_groups_share_one_append_with_a_record_each() -> None:
    stage = await leading(flush=FlushPolicy.ALWAYS)
    stage.produce(3)
    await settle()
    one, other = stage.lead("group"), stage.lead("other")
    await settle()
    for leader in (one, other):
        stage.fetch(leader)
    write_count = stage.filesystem.write_count
    stage.filesystem.hold()
    first = acknowledge(one, 0, 0)
    later = [acknowledge(other, 0, 0), acknowledge(one, 1, 1), acknowledge(other, 1, 1)]
    stage.filesystem.release()
    await settle()
    assert first.done
    assert all(ticket.done for ticket in later)
    assert stage.filesystem.write_count == write_count + 2
    assert len(stage.records("group")) == 3
    assert len(stage.records("other")) == 2


async def test_of_several_start_offsets_in_one_append_the_highest_holds() -> None:
    stage = await leading(flush=FlushPolicy.ALWAYS)
    stage.produce(6)
    await settle()
    leader = stage.lead()
    await settle()
    stage.fetch(leader)
    stage.filesystem.hold()
    acknowledge(leader, 4, 4)
    leader.checkpoint()
    stage.log.delete_records(3)
    stage.filesystem.release()
    await settle()
    newest = stage.records()[-1][1]
    assert isinstance(newest, ShareCheckpoint)
    assert newest.start_offset == leader.image.start_offset == 3
    assert shapes(stage) == ["6:C1", "7:D1<-6", "8:C2"]


async def test_nothing_takes_effect_before_it_is_written() -> None:
    stage = await leading(flush=FlushPolicy.ALWAYS)
    stage.produce(3)
    await settle()
    leader = stage.lead()
    assert not leader.core.is_initialised
    assert leader.start.is_being_recorded
    await settle()
    assert leader.core.spso == 0
    stage.fetch(leader)
    stage.filesystem.hold()
    acknowledge(leader, 0, 2)
    await settle()
    assert (leader.core.spso, leader.image.start_offset) == (0, 0)
    stage.filesystem.release()
    await settle()
    assert (leader.core.spso, leader.image.start_offset) == (3, 3)


async def test_a_write_that_fails_is_aborted_and_reported() -> None:
    stage, leader = await fetched(2)
    stage.filesystem.write_error, stage.filesystem.failing_suffix = errno.EIO, ".log"
    ticket = acknowledge(leader, 0, 1)
    assert isinstance(ticket.error, LogOffline)
    assert (leader.core.spso, leader.image.start_offset, leader.image.delta_count) == (0, 0, 0)
    again = acknowledge(leader, 0, 1)
    assert isinstance(again.error, LogOffline)


async def test_a_failed_beginning_may_be_tried_again() -> None:
    stage = await leading()
    stage.filesystem.write_error, stage.filesystem.failing_suffix = errno.EIO, ".log"
    leader = stage.lead()
    assert not leader.core.is_initialised
    assert not leader.start.is_being_recorded


class TestLoading:
    async def reload(self, stage: Leading) -> Leading:
        """The state that another broker reads after this one was killed."""
        return await leading(stage.filesystem.copy())

    async def test_finds_nothing_in_a_log_without_state(self) -> None:
        stage = await leading()
        store = stage.partition_store
        assert store.load("group", 1) is None

    @pytest.mark.parametrize("deltas_per_checkpoint", [0, 1, 2, 500])
    async def test_gives_the_image_that_was_replayed(self, deltas_per_checkpoint: int) -> None:
        stage = await leading(deltas_per_checkpoint=deltas_per_checkpoint)
        stage.produce(5, 5)
        leader = stage.lead()
        stage.fetch(leader)
        for offset in (0, 1, 4, 7):
            acknowledge(leader, offset, offset)
        acknowledge(leader, 8, 9, RELEASE)
        loaded = (await self.reload(stage)).lead().image
        live = leader.image
        assert (loaded.start_offset, loaded.end_offset, loaded.ranges) == (2, 10, live.ranges)
        assert (loaded.checkpoint_epoch, loaded.delta_count) == (live.checkpoint_epoch, live.delta_count)
        assert loaded.last_control_offset == live.last_control_offset
        assert loaded.state_epoch == 7

    async def test_goes_on_with_the_chain(self) -> None:
        stage = await leading()
        stage.produce(4)
        leader = stage.lead()
        stage.fetch(leader)
        acknowledge(leader, 0, 0)
        again = await self.reload(stage)
        leader = again.lead()
        assert again.fetch(leader).acquired == [(1, 3, 1)]
        acknowledge(leader, 1, 1)
        assert shapes(again) == ["4:C1", "5:D1<-4", "6:D1<-5"]

    async def test_distinguishes_the_groups_of_one_log(self) -> None:
        stage = await leading()
        stage.produce(4)
        for group_id, offset in (("group", 0), ("other", 1), ("group", 1)):
            leader = stage.lead(group_id)
            stage.fetch(leader)
            acknowledge(leader, offset, offset)
        again = await self.reload(stage)
        assert again.lead("group").image.start_offset == 2
        other = again.lead("other").image
        assert (other.start_offset, other.delivery_complete_count) == (0, 1)

    async def test_leaves_the_state_of_an_earlier_group_of_the_name_alone(self) -> None:
        stage = await leading()
        stage.produce(4)
        leader = stage.lead()
        stage.fetch(leader)
        acknowledge(leader, 0, 3)
        again = await self.reload(stage)
        again.groups.incarnations["group"] = 2
        assert again.fetch(again.lead()).acquired == [(0, 3, 1)]

    async def test_ends_at_a_tombstone(self) -> None:
        stage = await leading()
        leader = stage.lead()
        store = stage.partition_store
        ticket = store.reset("group", leader.image, deleted=True)
        assert ticket.done
        assert leader.image.deleted
        assert store.load("group", 1) is None

    async def test_begins_at_a_reset(self) -> None:
        stage = await leading()
        stage.produce(4)
        leader = stage.lead()
        stage.fetch(leader)
        acknowledge(leader, 0, 0)
        image = leader.image.copy()
        image.start_offset = image.end_offset = 2
        image.ranges = [StateRange(3, 3, ACKNOWLEDGED, 1)]
        store = stage.partition_store
        store.reset("group", image)
        assert image.checkpoint_epoch == 2
        loaded = store.load("group", 1)
        assert loaded is not None
        assert (loaded.start_offset, loaded.delta_count) == (2, 0)
