"""Acquiring records, rule by rule; the observed figures are Apache Kafka 4.3.1's."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Cause, StateRange
from barnabas.share.partition.acquisition import READ_GAP_MAX, READS_MAX
from barnabas.share.partition.limits import AcquireMode
from tests.share.partition.core import Acquisition
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    BATCH_OPTIMIZED,
    GAP,
    LIMITS,
    RECORD_LIMIT,
    RELEASE,
    Leader,
)


@pytest.mark.parametrize(
    ("sizes", "records_max", "batch_size", "acquired"),
    [
        pytest.param([1], 10, 10, [(0, 0, 1)], id="a single record"),
        pytest.param([5], 10, 10, [(0, 4, 1)], id="one batch"),
        pytest.param([10], 3, 10, [(0, 9, 1)], id="a batch is not cut by the record limit"),
        pytest.param([20, 20, 20], 5, 500, [(0, 19, 1)], id="up to the end of the batch of the last record"),
        pytest.param([5, 15, 15], 10, 500, [(0, 19, 1)], id="the limit ends in the second batch"),
        pytest.param([5, 5, 5], 10, 500, [(0, 9, 1)], id="the limit ends with a batch"),
        pytest.param([20, 20, 20], 45, 10, [(0, 19, 1), (20, 39, 1), (40, 59, 1)], id="pieces of batch size"),
        pytest.param([2, 3, 5, 7], 500, 5, [(0, 4, 1), (5, 9, 1), (10, 16, 1)], id="cut where batches begin"),
        pytest.param(
            [2, 3, 5, 7], 500, 6, [(0, 9, 1), (10, 16, 1)], id="a piece has at least the batch size"
        ),
        pytest.param([12], 500, 5, [(0, 11, 1)], id="one batch is never split"),
        pytest.param([2, 2], 500, 0, [(0, 1, 1), (2, 3, 1)], id="batch size 0 splits at each batch"),
        pytest.param([5], 0, 10, [], id="no records requested"),
        pytest.param([], 10, 10, [], id="an empty log"),
    ],
)
def test_new_records_are_acquired_in_whole_batches(
    sizes: list[int], records_max: int, batch_size: int, acquired: list[tuple[int, int, int]]
) -> None:
    leader = Leader().produce(*sizes)
    assert leader.fetch(records_max=records_max, batch_size=batch_size) == acquired
    assert leader.partition.speo == (acquired[-1][1] + 1 if acquired else 0)
    assert leader.partition.in_flight_batch_count == len(acquired)


@pytest.mark.parametrize(
    ("sizes", "records_max", "acquired", "speo"),
    [
        pytest.param([10], 5, [(0, 4, 1)], 10, id="the rest of the batch is in flight, available"),
        pytest.param([5, 15, 15], 10, [(0, 9, 1)], 20, id="up to the end of the second batch"),
        pytest.param([5, 5, 5], 20, [(0, 14, 1)], 15, id="fewer records than requested"),
        pytest.param([5, 5], 5, [(0, 4, 1)], 5, id="exactly one batch"),
    ],
)
def test_no_more_new_records_are_acquired_than_the_record_limit(
    sizes: list[int], records_max: int, acquired: list[tuple[int, int, int]], speo: int
) -> None:
    leader = Leader().produce(*sizes)
    assert leader.fetch(records_max=records_max, mode=RECORD_LIMIT, batch_size=2) == acquired
    assert leader.partition.speo == speo
    assert leader.partition.in_flight_batch_count == 1


def test_record_limit_leaves_the_rest_of_a_batch_available_with_count_0() -> None:
    leader = Leader().produce(20, 10, 10)
    assert leader.fetch(records_max=5, mode=RECORD_LIMIT) == [(0, 4, 1)]
    assert leader.fetch(records_max=25, mode=RECORD_LIMIT) == [(5, 19, 1), (20, 29, 1)]
    assert leader.fetch(records_max=1) == [(30, 39, 1)]


def test_record_limit_is_kept_over_available_and_new_records() -> None:
    leader = Leader().produce(5, 5)
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(0, 2, 1)]
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(3, 4, 1), (5, 5, 1)]
    assert leader.fetch("member-2", records_max=3, mode=RECORD_LIMIT) == [(6, 8, 1)]


def test_members_in_different_modes_never_share_a_record() -> None:
    leader = Leader().produce(10, 10)
    assert leader.fetch("member-1", records_max=4, mode=RECORD_LIMIT) == [(0, 3, 1)]
    assert leader.fetch("member-2", records_max=1) == [(4, 9, 1)]
    assert leader.fetch("member-3", records_max=5, mode=RECORD_LIMIT) == [(10, 14, 1)]
    assert leader.fetch("member-1") == [(15, 19, 1)]


def test_records_that_are_held_are_not_acquired_again() -> None:
    leader = Leader().produce(5)
    assert leader.fetch() == [(0, 4, 1)]
    assert leader.fetch("member-2") == []
    leader.produce(5)
    assert leader.fetch("member-2") == [(5, 9, 1)]


def test_released_batches_come_before_new_records_each_by_itself() -> None:
    leader = Leader().produce(5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(0, 9, RELEASE)
    leader.produce(5)
    assert leader.fetch() == [(0, 4, 2), (5, 9, 2), (10, 14, 1)]


def test_the_lowest_available_record_comes_first_in_any_order_of_release() -> None:
    leader = Leader().produce(5, 5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(10, 14, RELEASE)
    leader.acknowledge(0, 4, RELEASE)
    assert leader.fetch(records_max=5) == [(0, 4, 2)]
    assert leader.fetch(records_max=5) == [(10, 14, 2)]


def test_whole_batches_leave_no_available_records_to_look_for() -> None:
    leader = Leader().produce(5, 5)
    leader.fetch()
    assert leader.partition.window.available_from is None


def test_a_released_batch_goes_out_whole_even_above_the_record_limit() -> None:
    leader = Leader().produce(20)
    leader.fetch()
    leader.acknowledge(0, 19, RELEASE)
    assert leader.fetch(records_max=1) == [(0, 19, 2)]


def test_a_batch_in_parts_goes_out_offset_by_offset_neighbours_with_equal_count_together() -> None:
    leader = Leader().produce(10)
    leader.fetch()
    leader.acknowledge(2, 3, RELEASE)
    leader.fetch()
    leader.acknowledge(1, 5, RELEASE)
    leader.acknowledge(7, 8, RELEASE)
    assert leader.fetch() == [(1, 1, 2), (2, 3, 3), (4, 5, 2), (7, 8, 2)]


def test_the_record_limit_ends_in_the_middle_of_available_records() -> None:
    leader = Leader().produce(10)
    leader.fetch()
    leader.acknowledge(0, 9, *(RELEASE if offset % 3 else ACCEPT for offset in range(10)))
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(1, 2, 2), (4, 4, 2)]
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(5, 5, 2), (7, 8, 2)]


def test_only_records_that_were_read_are_acquired() -> None:
    leader = Leader().produce(5, 5, 5)
    plan = leader.partition.plan_acquire(500, LIMITS)
    acquisition = leader.partition.acquire(
        plan,
        "member-1",
        [(0, 4), (5, 9)],
        records_max=500,
        batch_size=500,
        acquire_mode=BATCH_OPTIMIZED,
        limits=LIMITS,
        now_ms=0,
    )
    assert acquisition.acquired == [(0, 9, 1)]
    leader.acknowledge(0, 9, RELEASE)
    plan = leader.partition.plan_acquire(500, LIMITS)
    acquisition = leader.partition.acquire(
        plan,
        "member-1",
        [(0, 4)],
        records_max=500,
        batch_size=500,
        acquire_mode=BATCH_OPTIMIZED,
        limits=LIMITS,
        now_ms=0,
    )
    assert acquisition.acquired == [(0, 4, 2)], "a batch that is read in part is acquired in part"


def test_nothing_read_is_nothing_acquired() -> None:
    leader = Leader()
    plan = leader.partition.plan_acquire(10, LIMITS)
    assert leader.partition.acquire(
        plan,
        "member-1",
        [],
        records_max=10,
        batch_size=10,
        acquire_mode=BATCH_OPTIMIZED,
        limits=LIMITS,
        now_ms=0,
    ) == Acquisition([], None)


def test_in_flight_window_may_be_overshot_by_the_end_of_a_batch_but_no_further() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=100)).produce(60, 60, 60)
    assert leader.fetch() == [(0, 119, 1)]
    assert leader.fetch("member-2") == []
    assert leader.partition.plan_acquire(500, leader.limits).reads == []


def test_acknowledged_records_count_in_the_window_until_the_spso_passes_them() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=10)).produce(*[1] * 20)
    leader.fetch(records_max=10)
    leader.acknowledge(1, 9, ACCEPT)
    assert (leader.fetch(), leader.partition.in_flight_count) == ([], 10)
    leader.acknowledge(0, 0, ACCEPT)
    assert leader.fetch(records_max=3) == [(10, 12, 1)]


def test_available_records_inside_a_full_window_are_always_acquired() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=20)).produce(5, 10, 5, 3)
    assert leader.fetch() == [(0, 19, 1)]
    leader.acknowledge(5, 14, RELEASE)
    assert leader.fetch() == [(5, 14, 2)]
    leader.acknowledge(19, 19, RELEASE)
    assert leader.fetch() == [(19, 19, 2)]


@pytest.mark.parametrize(("locks_max", "acquired"), [(50, []), (51, [(50, 50, 1)]), (30, [])])
def test_window_is_that_of_the_moment(locks_max: int, acquired: list[tuple[int, int, int]]) -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=50)).produce(*[1] * 60)
    leader.fetch()
    leader.limits = LIMITS._replace(record_locks_max=locks_max)
    assert leader.fetch() == acquired
    assert leader.partition.in_flight_count == 50 + len(acquired)


def test_records_that_compaction_took_are_archived_when_the_read_passes_over_them() -> None:
    leader = Leader().produce(5, 5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(0, 14, RELEASE)
    del leader.log[:2]
    assert leader.fetch() == [(10, 14, 2)]
    assert leader.deltas[-1].states == [StateRange(0, 9, ARCHIVED, 1, Cause.GAP)]
    assert leader.partition.spso == 10


def test_a_fetch_goes_on_when_compaction_took_all_that_it_found() -> None:
    leader = Leader().produce(5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(0, 4, RELEASE)
    acquisition = leader.partition.acquire(
        leader.partition.plan_acquire(500, LIMITS),
        "member-1",
        [(5, 9)],
        records_max=500,
        batch_size=500,
        acquire_mode=BATCH_OPTIMIZED,
        limits=LIMITS,
        now_ms=0,
    )
    assert (acquisition.acquired, acquisition.more_may_follow) == ([], True)


def test_part_of_a_batch_that_compaction_took_is_archived() -> None:
    leader = Leader().produce(10)
    leader.fetch()
    leader.acknowledge(3, 9, RELEASE)
    leader.log = [(7, 9)]
    assert leader.fetch() == [(7, 9, 2)]
    assert leader.states()[1] == (3, 6, ARCHIVED, 1)


def test_held_records_that_compaction_took_stay_with_their_owner() -> None:
    leader = Leader().produce(5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(5, 9, RELEASE)
    leader.log = [(8, 9)]
    assert leader.fetch() == [(8, 9, 2)]
    assert leader.states() == [(0, 4, AVAILABLE, 0), (5, 7, ARCHIVED, 1), (8, 9, AVAILABLE, 1)]


def test_holes_inside_a_read_are_acquired_for_the_client_to_report() -> None:
    leader = Leader().produce(5, 5, 5)
    leader.fetch(batch_size=5)
    leader.acknowledge(0, 14, RELEASE)
    del leader.log[1]
    assert leader.fetch() == [(0, 4, 2), (5, 9, 2), (10, 14, 2)]
    leader.acknowledge(5, 9, GAP)
    assert leader.states()[1] == (5, 9, ARCHIVED, 2)


def test_new_records_behind_a_compacted_hole_begin_where_the_log_goes_on() -> None:
    leader = Leader().produce(5, 5, 5)
    del leader.log[0]
    assert leader.fetch(records_max=5) == [(5, 9, 1)]
    assert leader.partition.spso == 5, "nothing was in flight: the hole is skipped immediately"
    del leader.log[1]
    leader.produce(5)
    assert leader.fetch() == [(15, 19, 1)]
    assert leader.states() == [(5, 9, AVAILABLE, 0), (10, 14, ARCHIVED, 0), (15, 19, AVAILABLE, 0)]
    leader.acknowledge(5, 9, ACCEPT)
    assert leader.partition.spso == 15


def test_a_hole_ends_with_its_last_record_and_not_with_control_records_behind_it() -> None:
    leader = Leader().produce(5, 5).control(3).produce(5)
    leader.fetch(records_max=5)
    del leader.log[1]
    assert leader.fetch("member-2") == [(13, 17, 1)]
    assert leader.states() == [(0, 4, AVAILABLE, 0), (5, 9, ARCHIVED, 0), (10, 17, AVAILABLE, 0)]


def test_compacted_records_are_archived_up_to_control_records_in_front_of_the_next_ones() -> None:
    leader = Leader().produce(5).control(3).produce(5)
    leader.fetch()
    leader.acknowledge(0, 12, RELEASE)
    del leader.log[0]
    assert leader.fetch() == [(8, 12, 2)]
    assert leader.deltas[-1].states == [StateRange(0, 4, ARCHIVED, 1, Cause.GAP)]
    assert leader.partition.spso == 5


def test_a_read_that_begins_inside_a_batch_ignores_records_below_the_spso() -> None:
    leader = Leader(5).produce(10)
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(5, 7, 1)]
    assert (leader.partition.spso, leader.partition.speo) == (5, 10)


def test_gaps_in_restored_state_are_fetched_like_released_records() -> None:
    states = (StateRange(15, 20, ARCHIVED, 1), StateRange(26, 30, AVAILABLE, 2))
    leader = Leader(5, states=states).produce(40)
    assert leader.states() == [
        (5, 14, AVAILABLE, 0),
        (15, 20, ARCHIVED, 1),
        (21, 25, AVAILABLE, 0),
        (26, 30, AVAILABLE, 2),
    ]
    assert leader.fetch() == [(5, 14, 1), (21, 25, 1), (26, 30, 3), (31, 39, 1)]


@pytest.mark.parametrize(
    ("sizes", "records_max", "batch_size", "acquired", "next_acquired"),
    [
        pytest.param([10] * 4, 15, 500, [(0, 19, 1)], [(20, 29, 1)], id="up to the end of a producer batch"),
        pytest.param([10] * 4, 20, 10, [(0, 9, 1), (10, 19, 1)], [(20, 29, 1)], id="pieces of batch size"),
        pytest.param([10] * 4, 20, 500, [(0, 19, 1)], [(20, 29, 1)], id="the limit ends with a batch"),
        pytest.param([40], 5, 5, [(0, 29, 1)], [(31, 39, 1)], id="not beyond the known records"),
        pytest.param([10] * 4, 30, 500, [(0, 29, 1)], [(31, 39, 1)], id="all of it"),
        pytest.param([10] * 4, 34, 500, [(0, 29, 1), (31, 39, 1)], [], id="and new records behind"),
    ],
)
def test_records_held_in_a_crash_are_delivered_by_producer_batches_again(
    sizes: list[int],
    records_max: int,
    batch_size: int,
    acquired: list[tuple[int, int, int]],
    next_acquired: list[tuple[int, int, int]],
) -> None:
    leader = Leader(states=(StateRange(30, 30, ACKNOWLEDGED, 1),)).produce(*sizes)
    assert leader.fetch(records_max=records_max, batch_size=batch_size) == acquired
    assert leader.fetch(records_max=1) == next_acquired


def test_a_plan_reads_no_more_of_it_than_is_requested() -> None:
    leader = Leader(states=(StateRange(30, 30, ACKNOWLEDGED, 1),)).produce(10, 10, 10, 10)
    assert leader.partition.plan_acquire(15, LIMITS).reads == [(0, 15)]


def test_the_part_of_it_that_was_read_is_a_batch_like_others() -> None:
    leader = Leader(states=(StateRange(30, 30, ACKNOWLEDGED, 1),)).produce(10, 10, 10)
    leader.fetch(records_max=15)
    leader.acknowledge(0, 19, RELEASE)
    assert leader.fetch("member-2", records_max=1) == [(0, 19, 2)]


def test_a_record_limit_leaves_the_rest_of_its_producer_batch_available() -> None:
    leader = Leader(states=(StateRange(30, 30, ACKNOWLEDGED, 1),)).produce(10, 10, 10)
    assert leader.fetch(records_max=5, mode=RECORD_LIMIT) == [(0, 4, 1)]
    assert leader.fetch("member-2", records_max=1) == [(5, 9, 1)]
    assert leader.fetch("member-2", records_max=1) == [(10, 19, 1)]


def test_compacted_records_of_it_are_archived() -> None:
    leader = Leader(states=(StateRange(30, 30, ACKNOWLEDGED, 1),)).produce(10, 10, 10)
    del leader.log[0]
    assert leader.fetch(records_max=5) == [(10, 19, 1)]
    assert leader.partition.spso == 10
    assert leader.fetch(records_max=5) == [(20, 29, 1)]


def test_compacted_records_of_it_may_lie_behind_held_ones() -> None:
    states = (StateRange(0, 9, AVAILABLE, 1), StateRange(30, 30, ACKNOWLEDGED, 1))
    leader = Leader(states=states).produce(10, 10, 10)
    del leader.log[1]
    assert leader.fetch(records_max=10) == [(0, 9, 2)]
    assert leader.fetch(records_max=5) == [(20, 29, 1)]
    leader.acknowledge(20, 29, RELEASE)
    assert leader.states() == [
        (0, 9, AVAILABLE, 1),
        (10, 19, ARCHIVED, 0),
        (20, 29, AVAILABLE, 1),
        (30, 30, ACKNOWLEDGED, 1),
    ]
    leader.partition.decide_log_start(20)
    assert leader.fetch("member-2", records_max=1) == [(20, 29, 2)]


def test_records_that_a_checkpoint_leaves_open_at_its_end_are_fetched_again() -> None:
    leader = Leader(5, states=(StateRange(5, 9, ACKNOWLEDGED, 1),), end_offset=12).produce(12)
    assert (leader.partition.spso, leader.partition.speo) == (10, 12)
    assert leader.fetch() == [(10, 11, 1)]


def test_plan_skips_long_stretches_that_are_held_and_reads_over_short_ones() -> None:
    leader = Leader().produce(100)
    leader.fetch()
    near = READ_GAP_MAX + 1
    far = near + READ_GAP_MAX + 2
    for offset in (0, near, far):
        leader.acknowledge(offset, offset, RELEASE)
    assert leader.partition.plan_acquire(3, LIMITS).reads == [(0, near + 1), (far, 1)]


def test_new_records_follow_released_ones_that_lie_far_before_them() -> None:
    leader = Leader().produce(5, READ_GAP_MAX + 1, 10)
    leader.fetch(records_max=5)
    leader.fetch(records_max=READ_GAP_MAX + 1)
    leader.acknowledge(0, 4, RELEASE)
    new_from = 5 + READ_GAP_MAX + 1
    assert leader.fetch() == [(0, 4, 2), (new_from, new_from + 9, 1)]


def test_plan_has_a_bounded_number_of_reads() -> None:
    limits = LIMITS._replace(record_locks_max=10_000)
    leader = Leader(limits=limits).produce(10_000)
    leader.fetch(records_max=10_000)
    for offset in range(0, 10_000, READ_GAP_MAX + 2):
        leader.acknowledge(offset, offset, RELEASE)
    plan = leader.partition.plan_acquire(500, limits)
    assert len(plan.reads) == READS_MAX
    assert leader.partition.planned_count(plan, 10_000) <= READS_MAX


def test_window_limit_and_pieces_count_data_records_only() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=10))
    leader.produce(4).control(50).produce(4).control(50).produce(4, 4)
    assert leader.fetch(batch_size=4) == [(0, 3, 1), (54, 57, 1), (108, 111, 1)]
    assert leader.partition.in_flight_count == 12
    for first, last in ((0, 3), (54, 57), (108, 111)):
        leader.acknowledge(first, last, ACCEPT)
        assert leader.partition.spso == last + 1


def test_acquired_ranges_are_cut_around_control_records_which_stay_within_one_batch() -> None:
    leader = Leader().control(2).produce(3).control(2).produce(3).control(1)
    assert leader.fetch() == [(2, 4, 1), (7, 9, 1)]
    assert leader.partition.in_flight_batch_count == 1
    assert leader.states() == [(0, 9, AVAILABLE, 0)]
    leader.acknowledge(2, 4, ACCEPT)
    assert leader.partition.spso == 5, "the SPSO may rest on a control offset"
    leader.acknowledge(7, 9, ACCEPT)
    assert (leader.partition.spso, leader.partition.speo) == (10, 10)


def test_record_limit_counts_over_control_records() -> None:
    leader = Leader().produce(3).control(4).produce(5)
    assert leader.fetch(records_max=5, mode=RECORD_LIMIT) == [(0, 2, 1), (7, 8, 1)]
    assert leader.fetch(records_max=2, mode=RECORD_LIMIT) == [(9, 10, 1)]
    leader.acknowledge(0, 10, RELEASE)
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(0, 2, 2)]
    assert leader.fetch("member-2", records_max=9, mode=RECORD_LIMIT) == [(7, 10, 2), (11, 11, 1)]
    leader.acknowledge(0, 2, ACCEPT)
    leader.acknowledge(7, 11, ACCEPT, member_id="member-2")
    assert leader.partition.spso == 12, "no control offset is left behind"


def test_batches_of_aborted_transactions_are_archived_and_cut_out() -> None:
    leader = Leader().produce(3, 1, 3, 1, 2, 1)
    assert leader.fetch(aborted=((4, 6),)) == [(0, 3, 1), (7, 10, 1)]
    assert leader.deltas[-1].states == [
        StateRange(0, 3, AVAILABLE, 0),
        StateRange(4, 6, ARCHIVED, 1, Cause.TRANSACTION_ABORTED, "member-1"),
    ]
    assert leader.partition.delivery_complete_count == 3
    leader.acknowledge(0, 3, ACCEPT)
    assert leader.partition.spso == 7


def test_an_aborted_batch_within_control_records_is_archived_to_its_last_record() -> None:
    leader = Leader().produce(2).control(2).produce(2).control(2).produce(2)
    assert leader.fetch(aborted=((4, 5),)) == [(0, 1, 1), (8, 9, 1)]
    assert leader.states() == [(0, 1, AVAILABLE, 0), (2, 5, ARCHIVED, 1), (6, 9, AVAILABLE, 0)]


@pytest.mark.parametrize("mode", AcquireMode)
def test_a_record_whose_change_is_being_recorded_is_not_acquired(mode: AcquireMode) -> None:
    leader = Leader().produce(5)
    leader.fetch()
    released = leader.decide(1, 3, RELEASE)
    assert leader.fetch("member-2", mode=mode) == []
    assert leader.record(released).released
    assert leader.fetch("member-2", mode=mode) == [(1, 3, 2)]


def test_log_start_may_move_between_plan_and_acquire() -> None:
    leader = Leader().produce(5, 5)
    plan = leader.partition.plan_acquire(10, LIMITS)
    leader.record(leader.partition.decide_log_start(7))
    acquisition = leader.partition.acquire(
        plan,
        "member-1",
        leader.log,
        records_max=10,
        batch_size=10,
        acquire_mode=BATCH_OPTIMIZED,
        limits=LIMITS,
        now_ms=0,
    )
    assert acquisition.acquired == [(7, 9, 1)]
