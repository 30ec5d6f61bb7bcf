"""The locks that members hold now."""

from __future__ import annotations

from tests.share.partition.leader import ACCEPT, RENEW, Leader


def locks(leader: Leader) -> list[tuple[str, int, int]]:
    return list(leader.partition.held_locks())


def test_without_a_delivery_there_is_no_lock() -> None:
    assert locks(Leader().produce(3)) == []


def test_each_lock_has_its_member_its_records_and_the_time_of_the_acquisition() -> None:
    leader = Leader().produce(3, 2)
    leader.fetch("member-1", 3)
    leader.now_ms = 400
    leader.fetch("member-2", 2)
    assert locks(leader) == [("member-1", 3, 0), ("member-2", 2, 400)]


def test_an_acknowledged_record_is_not_locked_and_a_renewed_one_keeps_its_acquisition() -> None:
    leader = Leader().produce(3)
    leader.fetch()
    leader.now_ms = 400
    leader.acknowledge(0, 0, ACCEPT)
    leader.acknowledge(2, 2, RENEW)
    assert locks(leader) == [("member-1", 1, 0), ("member-1", 1, 0)]


def test_offsets_of_share_state_are_no_records() -> None:
    leader = Leader().produce(2).control(3).produce(2)
    leader.fetch()
    assert sum(lock.record_count for lock in leader.partition.held_locks()) == 4
