"""The share-partition as a whole: start offset, log start, counts, restart."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from tests.share.partition.core import SharePartition
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    LIMITS,
    RECORD_LIMIT,
    RELEASE,
    RENEW,
    Leader,
)


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch(batch_size=1)
    return leader


def test_start_offset_holds_once_it_is_recorded() -> None:
    leader = Leader(-1).produce(10)
    decision = leader.partition.decide_start_offset(4)
    assert decision.start_offset == 4
    assert not decision.is_empty
    leader.partition.abort(decision)
    assert not leader.partition.is_initialised
    assert leader.partition.lag(10) == -1
    assert leader.record(leader.partition.decide_start_offset(4)).spso_moved
    assert (leader.image.start_offset, leader.image.end_offset) == (4, 4)
    assert (leader.partition.spso, leader.partition.speo, leader.partition.lag(10)) == (4, 4, 6)
    assert leader.fetch() == [(4, 9, 1)]


def test_an_image_without_states_starts_at_its_start_offset() -> None:
    partition = Leader(7).partition
    assert (partition.is_initialised, partition.spso, partition.speo) == (True, 7, 7)
    assert (partition.in_flight_count, partition.in_flight_batch_count) == (0, 0)


def test_restored_final_prefix_is_passed_and_the_rest_is_as_recorded() -> None:
    states = (
        StateRange(5, 9, ACKNOWLEDGED, 1),
        StateRange(10, 14, ARCHIVED, 5),
        StateRange(15, 17, AVAILABLE, 2),
        StateRange(18, 19, ACKNOWLEDGED, 1),
    )
    partition = Leader(5, states=states).partition
    assert (partition.spso, partition.speo, partition.delivery_complete_count) == (15, 20, 2)
    assert partition.lag(25) == 8


def test_restored_state_over_control_records_has_no_batch_without_records() -> None:
    control_runs = ControlRuns()
    control_runs.append(5, 9)
    image = ShareStateImage(control_runs)
    image.start_offset, image.end_offset = 5, 16
    image.ranges = [StateRange(5, 8, AVAILABLE, 1), StateRange(13, 14, ACKNOWLEDGED, 1)]
    control_runs.append(15, 16)
    partition = SharePartition(image, control_runs)
    assert partition.in_flight_batch_count == 2
    assert partition.durable_ranges(5, 15) == [
        StateRange(5, 12, AVAILABLE, 0),
        StateRange(13, 14, ACKNOWLEDGED, 1),
    ]


def test_lag_and_counts_leave_control_records_out() -> None:
    leader = Leader().produce(5).control(10).produce(5)
    leader.fetch()
    leader.acknowledge(3, 16, ACCEPT)
    assert leader.partition.in_flight_count == 10
    assert leader.partition.delivery_complete_count == 4
    assert leader.partition.lag(20) == 6
    leader.acknowledge(0, 2, ACCEPT)
    leader.acknowledge(17, 19, ACCEPT)
    leader.control(7)
    assert leader.partition.lag(20) == 0


def test_lag_below_an_offset_counts_the_records_in_flight_below_it() -> None:
    leader = Leader().produce(5).control(10).produce(5)
    leader.fetch()
    leader.acknowledge(1, 3, ACCEPT)
    partition = leader.partition
    assert [partition.lag(end_offset) for end_offset in (0, 1, 3, 5, 10, 15, 16, 20)] == [
        *(0, 1, 1, 2, 2, 2, 3, 7),
    ]


def test_lag_excludes_aborted_records_immediately() -> None:
    leader = Leader().produce(16, 9)
    leader.acknowledge(*leader.fetch(records_max=1)[0][:2], RELEASE)
    assert leader.partition.lag(25) == 25
    assert leader.fetch(aborted=((16, 24),)) == [(0, 15, 2)]
    assert leader.partition.lag(25) == 16, "Kafka answers 25 until something is acknowledged or released"


def test_lag_excludes_records_below_the_log_start_immediately() -> None:
    leader = Leader().produce(9, 16)
    leader.fetch()
    leader.acknowledge(9, 9, RELEASE)
    assert leader.partition.lag(25) == 25
    leader.record(leader.partition.decide_log_start(9))
    assert leader.partition.lag(25) == 16, "Kafka answers 25 until a fetch begins below the log start"


def test_acquired_records_are_recorded_with_one_delivery_less_after_a_restart() -> None:
    leader = held(10)
    leader.acknowledge(0, 4, RELEASE)
    leader.fetch()
    leader.restart()
    assert (leader.partition.spso, leader.partition.speo) == (0, 5), "unrecorded deliveries are fetched again"
    assert leader.fetch() == [(0, 4, 2), (5, 9, 1)]


def test_a_failed_acknowledgement_leaves_no_trace_after_a_restart() -> None:
    leader = held(10)
    leader.partition.abort(leader.decide(0, 9, ACCEPT))
    leader.restart()
    assert leader.fetch() == [(0, 9, 1)]


@pytest.mark.parametrize(
    ("log_start_offset", "spso", "speo", "states"),
    [
        pytest.param(3, 3, 15, [(3, 9, AVAILABLE, 0), (10, 14, AVAILABLE, 1)], id="inside a held batch"),
        pytest.param(5, 5, 15, [(5, 9, AVAILABLE, 0), (10, 14, AVAILABLE, 1)], id="between batches"),
        pytest.param(12, 12, 15, [(12, 14, AVAILABLE, 1)], id="inside a released batch"),
        pytest.param(14, 14, 15, [(14, 14, AVAILABLE, 1)], id="to the last record in flight"),
        pytest.param(15, 15, 15, [], id="to the end"),
        pytest.param(40, 40, 40, [], id="ahead of the end"),
    ],
)
def test_log_start_takes_everything_below_with_it(
    log_start_offset: int, spso: int, speo: int, states: list[tuple[int, int, RecordState, int]]
) -> None:
    leader = held(5, 5, 5)
    leader.acknowledge(10, 14, RELEASE)
    decision = leader.partition.decide_log_start(log_start_offset)
    assert (decision.start_offset, decision.outcome.spso_moved) == (spso, True)
    assert (leader.partition.spso, leader.partition.speo) == (spso, speo)
    assert leader.states() == states
    leader.record(decision)
    assert leader.image.start_offset == spso


def test_log_start_at_or_below_the_spso_changes_nothing() -> None:
    leader = held(10)
    leader.acknowledge(0, 4, ACCEPT)
    assert leader.partition.decide_log_start(5).is_empty
    assert leader.partition.decide_log_start(2).is_empty
    assert Leader(-1).partition.decide_log_start(5).is_empty


def test_log_start_that_meets_final_records_passes_these_too() -> None:
    leader = held(5, 5, 5)
    leader.acknowledge(5, 9, ACCEPT)
    assert leader.partition.decide_log_start(5).start_offset == 10
    assert leader.partition.delivery_complete_count == 0


def test_acknowledgements_below_a_moved_log_start_succeed_and_are_not_recorded() -> None:
    leader = held(5, 5)
    leader.record(leader.partition.decide_log_start(7))
    assert leader.decide(0, 4, ACCEPT).is_empty
    assert leader.decide(0, 6, RENEW).is_empty
    decision = leader.decide(5, 9, RELEASE)
    assert decision.changes == [StateRange(7, 9, AVAILABLE, 1, Cause.RELEASE, "member-1")]


@pytest.mark.parametrize("ends_by", ["expiry", "session end"])
def test_expiry_and_session_end_after_a_moved_log_start_concern_the_remaining_records(ends_by: str) -> None:
    leader = held(5, 5)
    leader.record(leader.partition.decide_log_start(7))
    decision = leader.expire(1_000) if ends_by == "expiry" else leader.release_member()
    assert [(change.base_offset, change.last_offset) for change in decision.changes] == [(7, 9)]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_log_start_may_pass_records_whose_acknowledgement_is_being_recorded(is_recorded: bool) -> None:
    leader = held(5, 5)
    low, high = leader.decide(0, 4, RELEASE), leader.decide(5, 9, ACCEPT)
    start = leader.partition.decide_log_start(7)
    if is_recorded:
        leader.record(low)
        leader.record(high)
        leader.record(start)
        assert leader.partition.spso == 10
    else:
        leader.partition.abort(low)
        leader.partition.abort(high)
        leader.record(start)
        assert leader.states() == [(7, 9, AVAILABLE, 0)]
        assert leader.partition.delivery_complete_count == 0
    assert leader.image.start_offset == leader.partition.spso


def test_records_that_the_log_start_took_are_not_counted_when_their_acknowledgement_is_recorded() -> None:
    leader = held(5, 5)
    low = leader.decide(0, 4, ACCEPT)
    start = leader.partition.decide_log_start(7)
    leader.record(low)
    leader.record(start)
    leader.acknowledge(8, 8, ACCEPT)
    assert leader.partition.delivery_complete_count == 1
    assert leader.partition.lag(10) == 2


def test_log_start_and_acknowledgement_may_share_an_append() -> None:
    leader = held(5, 5)
    acceptance = leader.decide(7, 8, ACCEPT)
    leader.record(acceptance, leader.partition.decide_log_start(7))
    assert leader.partition.spso == 9
    assert (leader.image.start_offset, leader.image.end_offset) == (9, 9)


def test_log_start_moves_over_the_hole_and_the_next_fetch_goes_on_behind_it() -> None:
    leader = held(5)
    leader.produce(5, 5)
    leader.record(leader.partition.decide_log_start(12))
    leader.log = [(10, 14)]
    assert leader.fetch() == [(12, 14, 1)]
    leader.acknowledge(12, 14, ACCEPT)
    assert leader.image.start_offset == leader.partition.spso == 15


def test_a_record_has_one_owner() -> None:
    leader = held(10)
    with pytest.raises(ApiError) as raised:
        leader.decide(0, 9, ACCEPT, member_id="member-2")
    assert raised.value.code is ErrorCode.invalid_record_state
    leader.acknowledge(0, 9, RELEASE)
    leader.fetch("member-2", records_max=5, mode=RECORD_LIMIT)
    with pytest.raises(ApiError):
        leader.decide(0, 4, ACCEPT)
    assert leader.acknowledge(0, 4, ACCEPT, member_id="member-2").spso_moved


def test_records_in_flight_are_bounded_by_the_window_over_many_rounds() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=20)).produce(*[3] * 100)
    for _ in range(40):
        acquired = leader.fetch(records_max=7)
        assert leader.partition.in_flight_count <= 22
        for first, last, _ in acquired:
            leader.acknowledge(first, last, ACCEPT)
    assert leader.partition.spso >= 100
