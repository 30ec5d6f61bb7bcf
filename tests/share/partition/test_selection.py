"""Throttling of records near their delivery limit: the series seen on Apache Kafka 4.3.1, and the rules."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import StateRange
from tests.share.partition.leader import ARCHIVED, AVAILABLE, LIMITS, RECORD_LIMIT, RELEASE, Leader


def deliveries(leader: Leader, rounds: int) -> list[list[tuple[int, int, int]]]:
    """The records of each fetch, when all of them are released before the next."""
    series: list[list[tuple[int, int, int]]] = []
    for _ in range(rounds):
        acquired = leader.fetch()
        for first, last, _ in acquired:
            leader.acknowledge(first, last, RELEASE)
        series.append(acquired)
    return series


def test_a_series_of_16_records_with_limit_5_shrinks_to_the_lowest_one() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=5)).produce(16)
    assert deliveries(leader, 5) == [
        [(0, 15, 1)],
        [(0, 15, 2)],
        [(0, 15, 3)],
        [(0, 7, 4)],
        [(0, 0, 5)],
    ], "the lowest record first"


def test_a_series_with_limit_5_whose_records_are_released_together_ends_one_by_one() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=5)).produce(16)
    deliveries(leader, 3)
    assert [leader.fetch(), leader.fetch(), leader.fetch()] == [[(0, 7, 4)], [(8, 15, 4)], []]
    leader.acknowledge(0, 15, RELEASE)
    assert deliveries(leader, 17) == [[(offset, offset, 5)] for offset in range(16)] + [[]]
    assert leader.partition.spso == 16, "archived, one after the other"


def test_a_series_of_16_records_with_limit_10_is_delivered_depth_first() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=10)).produce(16)
    assert deliveries(leader, 5) == [[(0, 15, count)] for count in range(1, 6)]
    assert deliveries(leader, 5) == [[(0, 7, 6)], [(0, 3, 7)], [(0, 1, 8)], [(0, 0, 9)], [(0, 0, 10)]]
    assert deliveries(leader, 2) == [[(1, 1, 9)], [(1, 1, 10)]], "depth first from the lowest"
    assert deliveries(leader, 5) == [[(2, 3, 8)], [(2, 2, 9)], [(2, 2, 10)], [(3, 3, 9)], [(3, 3, 10)]]
    assert deliveries(leader, 2) == [[(4, 7, 7)], [(4, 5, 8)]]


def test_a_series_of_7_records_with_limit_3_ends_one_by_one() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=3)).produce(7)
    assert deliveries(leader, 9) == [
        [(0, 6, 1)],
        [(0, 6, 2)],
        *([(offset, offset, 3)] for offset in range(7)),
    ]
    assert leader.partition.spso == 7


def test_a_series_with_limit_2_is_not_throttled() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=2)).produce(16)
    assert deliveries(leader, 3) == [[(0, 15, 1)], [(0, 15, 2)], []]


def test_halves_follow_each_record_s_own_count() -> None:
    limits = LIMITS._replace(delivery_count_max=7)
    leader = Leader(15, limits=limits, states=(StateRange(15, 34, AVAILABLE, 4),)).produce(35)
    assert deliveries(leader, 2) == [[(15, 24, 5)], [(15, 19, 6)]]
    assert deliveries(leader, 5) == [[(offset, offset, 7)] for offset in range(15, 20)]
    assert deliveries(leader, 1) == [[(20, 24, 6)]]
    assert deliveries(leader, 5) == [[(offset, offset, 7)] for offset in range(20, 25)]
    assert deliveries(leader, 1) == [[(25, 34, 5)]]


def test_a_throttled_batch_waits_if_something_was_acquired_before_it() -> None:
    states = (
        StateRange(15, 19, AVAILABLE, 2),
        StateRange(20, 22, ARCHIVED, 3),
        StateRange(26, 30, AVAILABLE, 3),
    )
    leader = Leader(5, states=states).produce(40)
    leader.log = [(7, 19), (20, 39)]
    assert leader.fetch() == [(7, 14, 1), (15, 19, 3), (23, 25, 1)]
    assert leader.fetch() == [(26, 27, 4)], "half of the batch of 5, and nothing new behind it"
    assert leader.fetch() == [(28, 29, 4)]


def test_records_before_one_on_its_last_delivery_go_without_it() -> None:
    leader = Leader(15, states=(StateRange(15, 34, AVAILABLE, 2),)).produce(35)
    assert leader.fetch() == [(15, 34, 3)]
    leader.acknowledge(17, 17, RELEASE)
    leader.acknowledge(20, 20, RELEASE)
    assert leader.fetch() == [(17, 17, 4), (20, 20, 4)], "half of the 20 records of the batch may go"
    leader.acknowledge(15, 34, RELEASE)
    assert leader.fetch() == [(15, 16, 4)]
    assert leader.fetch() == [(17, 17, 5)]


def test_records_on_their_last_delivery_are_isolated() -> None:
    states = (
        StateRange(15, 16, AVAILABLE, 3),
        StateRange(17, 17, AVAILABLE, 4),
        StateRange(18, 34, AVAILABLE, 3),
    )
    leader = Leader(15, states=states).produce(35)
    assert leader.fetch() == [(15, 15, 4)], "restored neighbours with other counts are batches of their own"
    assert leader.fetch() == [(16, 16, 4)]
    assert leader.fetch() == [(17, 17, 5)]
    assert leader.fetch() == [(18, 25, 4)]


def test_a_last_delivery_within_one_batch_goes_alone() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=3)).produce(4)
    leader.fetch()
    leader.acknowledge(2, 2, RELEASE)
    leader.fetch()
    leader.acknowledge(0, 3, RELEASE)
    assert leader.states() == [
        (0, 1, AVAILABLE, 1),
        (2, 2, AVAILABLE, 2),
        (3, 3, AVAILABLE, 1),
    ]
    assert leader.fetch() == [(0, 1, 2)]
    assert leader.fetch() == [(2, 2, 3)]
    assert leader.fetch() == [(3, 3, 2)]


def test_the_first_throttled_record_sets_the_measure() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=10)).produce(16)
    deliveries(leader, 4)
    leader.fetch()
    leader.acknowledge(4, 7, RELEASE)
    assert leader.fetch() == [(4, 7, 6)]
    leader.acknowledge(0, 15, RELEASE)
    assert leader.fetch() == [(0, 3, 6), (4, 7, 7)], "half of 16 by count 5, though a quarter by count 6"


def test_a_throttled_record_does_not_follow_when_its_company_is_complete() -> None:
    leader = Leader(limits=LIMITS._replace(delivery_count_max=5)).produce(10)
    deliveries(leader, 1)
    leader.fetch()
    leader.acknowledge(5, 9, RELEASE)
    leader.fetch()
    leader.acknowledge(0, 9, RELEASE)
    assert leader.states() == [(0, 4, AVAILABLE, 2), (5, 9, AVAILABLE, 3)]
    assert leader.fetch() == [(0, 4, 3)], "Kafka delivers all ten"
    assert leader.fetch() == [(5, 9, 4)]


def test_a_high_count_that_is_not_acquired_throttles_nothing() -> None:
    leader = Leader(15, states=(StateRange(15, 19, AVAILABLE, 1),)).produce(20)
    leader.fetch()
    leader.acknowledge(15, 15, RELEASE)
    assert leader.fetch() == [(15, 15, 3)]
    leader.acknowledge(16, 19, RELEASE)
    assert leader.fetch() == [(16, 19, 3)]


def test_a_high_count_whose_release_is_being_recorded_throttles_nothing() -> None:
    states = (
        StateRange(0, 4, AVAILABLE, 1),
        StateRange(5, 9, AVAILABLE, 2),
        StateRange(10, 14, AVAILABLE, 1),
    )
    leader = Leader(states=states).produce(15)
    assert leader.fetch() == [(0, 4, 2), (5, 9, 3), (10, 14, 2)]
    leader.acknowledge(0, 4, RELEASE)
    leader.acknowledge(10, 14, RELEASE)
    pending = leader.decide(5, 9, RELEASE)
    assert leader.fetch("member-2") == [(0, 4, 3), (10, 14, 3)]
    leader.record(pending)
    assert leader.fetch("member-2") == [(5, 6, 4)]


def test_the_record_limit_holds_within_a_throttled_batch() -> None:
    leader = Leader(states=(StateRange(0, 19, AVAILABLE, 3),)).produce(20)
    assert leader.fetch(records_max=3, mode=RECORD_LIMIT) == [(0, 2, 4)]
    assert leader.fetch(records_max=30, mode=RECORD_LIMIT) == [(3, 12, 4)]


@pytest.mark.parametrize(("limit_after", "acquired"), [(5, [(0, 1, 4)]), (10, [(0, 4, 4)])])
def test_throttling_follows_the_limit_of_the_moment(
    limit_after: int, acquired: list[tuple[int, int, int]]
) -> None:
    leader = Leader(states=(StateRange(0, 4, AVAILABLE, 3),)).produce(5)
    leader.limits = LIMITS._replace(delivery_count_max=limit_after)
    assert leader.fetch() == acquired


def test_half_of_a_batch_counts_its_data_records_only() -> None:
    leader = Leader(states=(StateRange(0, 27, AVAILABLE, 3),), end_offset=28)
    leader.control(8).produce(2).control(8).produce(10)
    leader.restart()
    assert leader.fetch() == [(8, 9, 4), (18, 21, 4)]
