"""Ranges that are locked, wait for a batch, are out or lost."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.share_source.held_ranges import HeldRanges
from barnabas.pipeline.share_source.ranges import AcquiredRange, OffsetRange, offset_count
from barnabas.protocol.identity import TopicIdPartition

ORDERS = TopicIdPartition(UUID(int=1), 0)
PAYMENTS = TopicIdPartition(UUID(int=2), 0)


def holding(*acquired: tuple[int, int]) -> HeldRanges:
    """A holding of orders, delivered once, locked until 1,000 ms."""
    held_ranges = HeldRanges()
    held_ranges.acquire(ORDERS, [AcquiredRange(first, last, 1) for first, last in acquired], 1_000)
    return held_ranges


def test_the_offsets_of_a_batch_are_bounded_and_the_rest_waits() -> None:
    held_ranges = holding((0, 9), (10, 29))
    assert held_ranges.take_batch(15, 100) == {ORDERS: [(0, 14, 1)]}
    assert held_ranges.waiting_count() == 15
    assert held_ranges.take_batch(100, 100) == {ORDERS: [(15, 29, 1)]}
    assert held_ranges.take_batch(100, 100) == {}


def test_the_ranges_of_a_batch_are_bounded() -> None:
    held_ranges = holding((0, 0), (2, 2), (4, 4))
    assert held_ranges.take_batch(100, 2) == {ORDERS: [(0, 0, 1), (2, 2, 1)]}
    assert held_ranges.take_batch(100, 2) == {ORDERS: [(4, 4, 1)]}


def test_ranges_behind_the_end_go_on_waiting() -> None:
    held_ranges = holding((0, 9))
    held_ranges.acquire(PAYMENTS, [AcquiredRange(0, 4, 1)], 1_000)
    assert held_ranges.waiting_count({ORDERS: 5}) == 5
    assert held_ranges.take_batch(100, 100, {ORDERS: 5}) == {ORDERS: [(0, 4, 1)]}
    assert held_ranges.take_batch(100, 100, {ORDERS: 5}) == {}
    assert held_ranges.held(ORDERS) == [(0, 9)]
    assert held_ranges.held(PAYMENTS) == [(0, 4)]


def test_settled_ranges_are_no_longer_held_and_only_held_ones_are_returned() -> None:
    held_ranges = holding((0, 9))
    held_ranges.take_batch(100, 100)
    held_ranges.lose(ORDERS, [OffsetRange(3, 4)])
    assert held_ranges.settle(ORDERS, [OffsetRange(0, 19)]) == [(0, 2), (5, 9)]
    assert held_ranges.partitions == set()


def test_a_lock_that_ends_is_forgotten_unless_it_is_renewed() -> None:
    held_ranges = holding((0, 9), (20, 29))
    held_ranges.renew(ORDERS, [OffsetRange(5, 22)], 2_000)
    assert held_ranges.expire(999) == 0
    assert held_ranges.expire(1_000) == 12
    assert held_ranges.held(ORDERS) == [(5, 9), (20, 22)]
    assert held_ranges.expire(2_000) == 8


def test_ranges_of_a_batch_stay_out_at_any_time() -> None:
    held_ranges = holding((0, 9))
    held_ranges.take_batch(100, 100)
    assert held_ranges.expire(5_000) == 0
    assert held_ranges.lose(ORDERS) == 10


def test_ranges_acquired_again_while_they_seem_to_wait_wait_once_with_their_new_lock() -> None:
    held_ranges = holding((0, 9))
    assert held_ranges.acquire(ORDERS, [AcquiredRange(5, 14, 2)], 2_000) == 5
    assert held_ranges.waiting_count() == 15
    assert held_ranges.expire(1_000) == 5
    assert held_ranges.take_batch(100, 100) == {ORDERS: [(5, 14, 2)]}


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.integers(1, 30), st.integers(1, 5))
def test_batches_hold_everything_once(lengths: list[int], count_max: int, range_count_max: int) -> None:
    held_ranges = HeldRanges()
    first = 0
    for length in lengths:
        held_ranges.acquire(ORDERS, [AcquiredRange(first, first + length - 1, 1)], 1_000)
        first += length + 1
    taken: list[AcquiredRange] = []
    while batch := held_ranges.take_batch(count_max, range_count_max):
        assert offset_count(batch[ORDERS]) <= count_max
        assert len(batch[ORDERS]) <= range_count_max
        taken += batch[ORDERS]
    assert offset_count(taken) == sum(lengths)
    assert taken == sorted(taken)
