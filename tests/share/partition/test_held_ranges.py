"""The records that a member still holds from one delivery."""

from __future__ import annotations

from tests.share.partition.leader import ACCEPT, RELEASE, Leader


def held(*sizes: int) -> Leader:
    leader = Leader().produce(*sizes)
    leader.fetch(batch_size=1)
    return leader


def test_all_acquired_records_are_held_at_first() -> None:
    leader = held(3, 2)
    assert leader.partition.held_ranges("member-1", [(0, 2, 1), (3, 4, 1)]) == [(0, 2, 1), (3, 4, 1)]


def test_another_member_or_another_delivery_holds_nothing() -> None:
    leader = held(3)
    assert leader.partition.held_ranges("member-2", [(0, 2, 1)]) == []
    assert leader.partition.held_ranges("member-1", [(0, 2, 2)]) == []
    leader.record(leader.release_member())
    assert leader.partition.held_ranges("member-1", [(0, 2, 1)]) == []
    leader.fetch()
    assert leader.partition.held_ranges("member-1", [(0, 2, 1)]) == []
    assert leader.partition.held_ranges("member-1", [(0, 2, 2)]) == [(0, 2, 2)]


def test_acknowledged_records_are_cut_out() -> None:
    leader = held(6)
    leader.acknowledge(0, 0, ACCEPT)
    leader.acknowledge(3, 3, RELEASE)
    assert leader.partition.held_ranges("member-1", [(0, 5, 1)]) == [(1, 2, 1), (4, 5, 1)]


def test_a_record_whose_acknowledgement_is_being_recorded_is_not_held() -> None:
    leader = held(3)
    decision = leader.decide(1, 1, ACCEPT)
    assert leader.partition.held_ranges("member-1", [(0, 2, 1)]) == [(0, 0, 1), (2, 2, 1)]
    leader.record(decision)


def test_runs_that_differ_only_in_their_deadlines_are_one_range() -> None:
    leader = held(4)
    leader.now_ms = 10
    leader.acknowledge(1, 2, 4)
    assert leader.partition.held_ranges("member-1", [(0, 3, 1)]) == [(0, 3, 1)]


def test_offsets_outside_of_the_window_are_left_out() -> None:
    leader = held(3)
    leader.acknowledge(0, 1, ACCEPT)
    assert leader.partition.held_ranges("member-1", [(0, 1, 1), (2, 9, 1), (12, 13, 1)]) == [(2, 2, 1)]
