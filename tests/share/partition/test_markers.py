"""Transaction markers and other batches without data: no member gets only those."""

from __future__ import annotations

from barnabas.protocol.delivery_state import Cause, StateRange
from tests.share.partition.leader import ACCEPT, ARCHIVED, AVAILABLE, LIMITS, Leader


def test_a_marker_alone_is_archived_and_not_handed_out() -> None:
    leader = Leader().produce(5)
    leader.fetch()
    leader.acknowledge(0, 4, ACCEPT)
    leader.produce(1)
    assert leader.partition.lag(6) == 1
    assert leader.fetch(markers=(5,)) == []
    assert leader.deltas[-1].states == [StateRange(5, 5, ARCHIVED, 1, Cause.GAP, "member-1")]
    assert (leader.partition.spso, leader.partition.lag(6)) == (6, 0)
    leader.restart()
    assert (leader.partition.spso, leader.fetch(markers=(5,))) == (6, [])


def test_markers_beside_records_stay_in_the_range() -> None:
    leader = Leader().produce(1, 3, 1, 2, 1)
    assert leader.fetch(markers=(0, 4, 7)) == [(0, 7, 1)], "clients acknowledge those as gaps"


def test_a_range_of_markers_beside_others_is_archived() -> None:
    leader = Leader().produce(3, 1, 1, 2)
    assert leader.fetch(batch_size=2, markers=(3, 4)) == [(0, 2, 1), (5, 6, 1)]
    assert leader.states() == [(0, 2, AVAILABLE, 0), (3, 4, ARCHIVED, 1), (5, 6, AVAILABLE, 0)]


def test_a_marker_that_cut_out_records_leave_alone_is_archived() -> None:
    leader = Leader().produce(3, 1)
    assert leader.fetch(aborted=((0, 2),), markers=(3,)) == []
    assert leader.partition.spso == 4


def test_a_marker_between_share_state_is_archived() -> None:
    leader = Leader().produce(2).control(2).produce(1).control(2).produce(2)
    assert leader.fetch(markers=(4,)) == [(0, 1, 1), (7, 8, 1)]
    leader.acknowledge(0, 1, ACCEPT)
    leader.acknowledge(7, 8, ACCEPT)
    assert (leader.partition.spso, leader.partition.lag(9)) == (9, 0)


def test_a_marker_whose_lock_ended_is_archived_when_it_would_go_out_again() -> None:
    leader = Leader().produce(3, 1)
    assert leader.fetch(markers=(3,)) == [(0, 3, 1)]
    leader.acknowledge(0, 2, ACCEPT)
    leader.record(leader.expire(LIMITS.lock_duration_ms))
    assert leader.fetch(markers=(3,)) == []
    assert leader.partition.spso == 4
