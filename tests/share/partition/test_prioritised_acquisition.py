"""The acquisition of records by their priorities, when some of those that were read turn out to be gone."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_keys import NO_KEY, KeyHashes
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import PriorityLimits
from tests.share.partition.core import Acquisition
from tests.share.partition.leader import LIMITS, RECORD_LIMIT, RELEASE, Leader

PRIORITISED = LIMITS._replace(priority=PriorityLimits("priority"))
URGENT = (0, 1, 2, 40)
"""The offsets of the urgent records."""


def batch_of(base_offset: int, last_offset: int, *hashes: int) -> BatchKeys:
    offsets = range(base_offset, last_offset + 1)
    keys = KeyHashes(list(range(len(offsets))), list(hashes) or [NO_KEY] * len(offsets))
    return BatchKeys(base_offset, last_offset, keys, bytes(9 * (one in URGENT) for one in offsets))


def acquire(
    leader: Leader,
    records_max: int,
    read: list[tuple[int, int]],
    *hashes: int,
    timed: Sequence[TimedPart] | None = None,
) -> Acquisition:
    plan = leader.partition.plan_acquire(records_max, leader.limits, RECORD_LIMIT)
    until = leader.partition.keys_until or 0
    return leader.partition.acquire(
        plan,
        "member-1",
        read,
        records_max=records_max,
        batch_size=500,
        acquire_mode=RECORD_LIMIT,
        limits=leader.limits,
        now_ms=0,
        keys=[batch_of(*one, *hashes) for one in read if one[1] >= until],
        timed=timed,
    )


def with_known_records() -> Leader:
    """The first record is acquired, and the priorities of all others are known."""
    leader = Leader(limits=PRIORITISED).produce(1, 1, 2, 36, 4)
    assert acquire(leader, 1, leader.log).acquired == [(0, 0, 1)]
    return leader


def test_no_less_urgent_record_takes_the_place_of_one_that_is_gone() -> None:
    leader = with_known_records()
    looked = acquire(leader, 2, [(2, 3)])
    assert (looked.acquired, looked.more_may_follow) == ([], True)
    assert looked.gaps is not None
    leader.record(looked.gaps)
    assert acquire(leader, 2, [(2, 3), (40, 43)]).acquired == [(2, 2, 1), (40, 40, 1)]


def test_a_read_of_chosen_records_that_reaches_new_ones_leaves_these_to_the_look_ahead() -> None:
    leader = with_known_records()
    known_until = leader.partition.keys_until
    leader.produce(1)
    assert acquire(leader, 2, [(1, 1), (2, 3), leader.log[-1]]).acquired == [(1, 2, 1)]
    assert leader.partition.keys_until == known_until


def test_records_are_chosen_when_it_is_recorded_that_those_before_them_have_expired() -> None:
    """The urgent record 40 has the key of 38, which has expired."""
    batch, keys = (38, 40), (7, NO_KEY, 7)
    leader = Leader(38, limits=PRIORITISED._replace(key_run_max=1))
    looked = acquire(leader, 1, [batch], *keys, timed=[TimedPart(38, 38, Cause.EXPIRED)])
    assert looked.acquired == []
    assert leader.partition.looked_until == 41, "the fetch plans again"
    assert looked.gaps is not None
    leader.record(looked.gaps)
    assert acquire(leader, 1, [batch], *keys, timed=()).acquired == [(40, 40, 1)]


def test_a_record_that_was_chosen_to_go_alone_goes_although_another_one_is_more_urgent() -> None:
    """Record 38 is before its last delivery, so it is chosen from its batch before the urgent 40."""
    batch = [(38, 41)]
    leader = Leader(38, limits=PRIORITISED._replace(delivery_count_max=3))
    assert acquire(leader, 4, batch).acquired == [(38, 41, 1)]
    leader.acknowledge(38, 38, RELEASE)
    assert acquire(leader, 4, batch).acquired == [(38, 38, 2)]
    leader.acknowledge(38, 38, RELEASE)
    leader.acknowledge(40, 40, RELEASE)
    assert acquire(leader, 2, batch).acquired == [(38, 38, 3)]


def test_no_less_urgent_record_takes_the_place_of_one_that_must_go_alone() -> None:
    """Of the available records 0, 1 and 3 the second is before its last delivery, and waits for the next
    fetch; the third is not urgent.
    """
    leader = Leader(limits=PRIORITISED._replace(delivery_count_max=3)).produce(4)
    assert acquire(leader, 4, leader.log).acquired == [(0, 3, 1)]
    leader.acknowledge(1, 1, RELEASE)
    assert acquire(leader, 1, leader.log).acquired == [(1, 1, 2)]
    for offset in (0, 1, 3):
        leader.acknowledge(offset, offset, RELEASE)
    assert acquire(leader, 2, leader.log).acquired == [(0, 0, 2)]
    assert acquire(leader, 2, leader.log).acquired == [(1, 1, 3)]
