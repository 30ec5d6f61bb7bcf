"""The plan of an acquisition: the reads, and the records that they can give."""

from __future__ import annotations

from barnabas.share.partition.limits import ShareLimits
from tests.share.partition.leader import ACCEPT, LIMITS, RECORD_LIMIT, RELEASE, Leader


def test_nothing_is_planned_before_the_start_offset_is_decided() -> None:
    leader = Leader(-1).produce(5)
    assert not leader.partition.is_initialised
    assert leader.partition.plan_acquire(10, LIMITS).reads == []


def test_plan_reads_new_records_as_far_as_limit_and_window_allow() -> None:
    leader = Leader(limits=ShareLimits(record_locks_max=100))
    assert leader.partition.plan_acquire(30, leader.limits).reads == [(0, 30)]
    assert leader.partition.plan_acquire(300, leader.limits).reads == [(0, 100)]


def test_a_plan_counts_the_records_that_can_be_acquired_below_an_offset() -> None:
    leader = Leader(limits=ShareLimits(record_locks_max=60)).produce(20, 20)
    leader.fetch(records_max=20)
    leader.acknowledge(0, 19, *[RELEASE, ACCEPT] * 10)
    plan = leader.partition.plan_acquire(500, leader.limits)
    counts = [leader.partition.planned_count(plan, upper_offset) for upper_offset in (20, 35, 1_000)]
    assert counts == [10, 25, 50], "the released ones, without those between them; the window has room for 40"


def test_control_offsets_are_no_records_that_a_plan_can_acquire() -> None:
    leader = Leader().produce(1).control(100).produce(1)
    plan = leader.partition.plan_acquire(500, leader.limits)
    assert leader.partition.planned_count(plan, leader.log_end_offset) == 2


def test_plan_reads_a_released_batch_whole_unless_records_are_limited() -> None:
    leader = Leader().produce(20, 20)
    leader.fetch()
    leader.acknowledge(0, 19, RELEASE)
    assert leader.partition.plan_acquire(5, LIMITS).reads == [(0, 20)]
    assert leader.partition.plan_acquire(5, LIMITS, RECORD_LIMIT).reads == [(0, 5)]
