"""The loads of share-partitions for the assignor: from leaders in memory, without keeping them there."""

from __future__ import annotations

from barnabas.coordinator.share_group.interfaces import PartitionLoad
from barnabas.share.leader.leader_loads import LeaderLoads
from tests.share.leader.leading import acknowledge, leading


async def test_a_load_is_all_records_that_are_waiting_or_in_flight() -> None:
    stage = await leading()
    stage.produce(4, 6)
    leader = stage.lead()
    loads = LeaderLoads(stage.share_partitions)
    assert loads.load_of(stage.key(), None) == PartitionLoad(10, 10)
    stage.fetch(leader, records_max=4)
    assert loads.load_of(stage.key(), None) == PartitionLoad(10, 10)
    acknowledge(leader, 0, 2)
    assert loads.load_of(stage.key(), None) == PartitionLoad(7, 10)
    assert loads.load_of(stage.key(), 4) == PartitionLoad(1, 10)
    assert loads.load_of(stage.key(), 5) == PartitionLoad(2, 10)
    assert loads.load_of(stage.key(), 100) == PartitionLoad(7, 10), "the log was cut since the last look"


async def test_a_load_is_unknown_without_a_leader_and_before_the_start_is_decided() -> None:
    stage = await leading()
    stage.produce(4)
    loads = LeaderLoads(stage.share_partitions)
    assert loads.load_of(stage.key(), None) is None
    undecided = stage.share_partitions.lead(stage.key(), stage.log)
    assert undecided is not None
    assert loads.load_of(stage.key(), None) is None
    undecided.start.begin_at(0)
    assert loads.load_of(stage.key(), None) is not None
    undecided.closed = True
    assert loads.load_of(stage.key(), None) is None


async def test_a_question_about_the_load_is_no_use_of_the_leader() -> None:
    stage = await leading()
    leader = stage.lead()
    leader.used = False
    assert LeaderLoads(stage.share_partitions).load_of(stage.key(), None) == PartitionLoad(
        0, stage.log.high_watermark
    )
    assert not leader.used
