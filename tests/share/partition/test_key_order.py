"""The records that may be delivered in the order of their keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.record_keys import NO_KEY
from barnabas.share.partition.key_order import KeyOrder

# pyright: reportPrivateUsage=false

EVERYWHERE = ((0, 1 << 40),)
A, B, C = 1, 2, 3


def order_of(*keys: int, run_max: int = 1, first_offset: int = 10) -> KeyOrder:
    order = KeyOrder(first_offset, run_max)
    order.add(range(first_offset, first_offset + len(keys)), keys)
    return order


def free(order: KeyOrder, count: int = 100) -> list[int]:
    return order.next_records(count, EVERYWHERE)


def take(order: KeyOrder, *offsets: int) -> None:
    for offset in offsets:
        order.take(offset, offset)


def test_the_first_record_of_each_key_may_go() -> None:
    assert free(order_of(A, A, B, A, C)) == [10, 12, 14]


def test_a_held_record_holds_back_its_own_key_only() -> None:
    order = order_of(A, A, B)
    take(order, 10)
    assert free(order) == [12]


def test_a_final_record_frees_the_next_one_of_its_key() -> None:
    order = order_of(A, A, B)
    take(order, 10)
    order.finish(10, 10, was_held=True)
    assert order.has_news
    assert free(order) == [11, 12]


def test_a_released_record_goes_again_before_the_others_of_its_key() -> None:
    order = order_of(A, A)
    take(order, 10)
    order.release(10, 10)
    assert free(order) == [10]


def test_records_without_a_key_have_no_order() -> None:
    order = order_of(NO_KEY, NO_KEY, A, NO_KEY)
    take(order, 10)
    assert free(order) == [11, 12, 13]


def test_the_lowest_records_go_first_up_to_the_count() -> None:
    assert free(order_of(A, B, A, C), count=2) == [10, 11]


def test_a_record_outside_of_the_reads_does_not_go() -> None:
    assert order_of(A, B, C).next_records(9, ((10, 10), (12, 20))) == [10, 12]


def test_an_archived_record_in_the_middle_of_a_key_leaves_the_others_in_order() -> None:
    order = order_of(A, A, A)
    order.finish(11, 11, was_held=False)
    assert free(order) == [10]
    take(order, 10)
    order.finish(10, 10, was_held=True)
    assert free(order) == [12]


def test_an_archived_first_record_is_followed_by_the_next_one() -> None:
    order = order_of(A, A)
    order.finish(10, 10, was_held=False)
    assert free(order) == [11]


def test_records_that_are_added_later_wait_behind_those_of_their_key() -> None:
    order = order_of(A)
    take(order, 10)
    order.add([11, 12], [A, B])
    assert free(order) == [12]
    order.finish(10, 10, was_held=True)
    assert free(order) == [11, 12]


def test_nothing_is_left_of_a_key_whose_records_are_final() -> None:
    order = order_of(A, A, B, NO_KEY)
    take(order, 10, 12, 13)
    order.finish(12, 13, was_held=True)
    order.finish(10, 10, was_held=True)
    take(order, 11)
    order.finish(11, 11, was_held=True)
    assert order.is_empty
    order.add([14], [A])
    assert free(order) == [14]


# Runs of several records


def test_a_run_goes_together_up_to_its_limit() -> None:
    assert free(order_of(A, A, B, A, A, run_max=3)) == [10, 11, 12, 13]


def test_the_next_run_begins_when_the_whole_run_has_ended() -> None:
    order = order_of(A, A, A, run_max=2)
    take(order, 10, 11)
    order.finish(10, 10, was_held=True)
    assert free(order) == []
    order.finish(11, 11, was_held=True)
    assert free(order) == [12]


def test_a_run_ends_where_the_reads_leave_out_a_record() -> None:
    order = order_of(A, A, A, run_max=3)
    assert order.next_records(9, ((10, 10), (12, 12))) == [10]


def test_the_records_behind_one_of_a_run_are_those_of_its_key() -> None:
    order = order_of(A, B, A, A, A, run_max=3)
    assert order.records_behind(10) == [12, 13]
    assert order.records_behind(14) == []


def test_a_run_is_not_free_while_one_of_its_records_is_held() -> None:
    order = order_of(A, A, A, run_max=3)
    take(order, 10, 11, 12)
    order.release(11, 12)
    assert free(order) == []
    order.finish(10, 10, was_held=True)
    assert free(order) == [11, 12]


# Batches that are delivered alone


def test_nothing_is_left_of_the_records_of_a_batch_that_was_delivered_alone() -> None:
    for run_max in (1, 3):
        order = KeyOrder(10, run_max)
        order.alone = (10, 40)
        order.take(10, 40)
        order.finish(10, 11, was_held=True)
        order.finish(12, 40, was_held=True)
        assert not order._held


def test_a_batch_that_waits_for_the_records_before_it_is_news_when_they_are_final() -> None:
    order = order_of(A, B)
    order.waits_until_empty = True
    take(order, 10, 11)
    order.finish(10, 10, was_held=True)
    assert not order.has_news
    order.finish(11, 11, was_held=True)
    assert order.has_news


# Many records at once


@given(st.lists(st.integers(-1, 30), min_size=20, max_size=60), st.lists(st.integers(-1, 30), max_size=60))
def test_many_records_that_become_final_at_once_are_like_single_ones(
    keys: list[int], more: list[int]
) -> None:
    together, singly = order_of(*keys), order_of(*keys)
    for order in (together, singly):
        order.add(range(100, 100 + len(more)), more)
    for _ in range(3):
        offsets = free(together)
        assert free(singly) == offsets
        runs = _runs(offsets)
        for first, last in runs:
            for order in (together, singly):
                order.take(first, last)
        for first, last in runs:
            together.finish(first, last, was_held=True)
            for offset in range(first, last + 1):
                singly.finish(offset, offset, was_held=True)
    assert free(together) == free(singly)
    assert together.is_empty == singly.is_empty


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] == offset - 1:
            runs[-1] = (runs[-1][0], offset)
        else:
            runs.append((offset, offset))
    return runs


def test_the_available_records_before_a_held_one_of_its_key_are_known() -> None:
    order = order_of(A, B, A, A, run_max=3)
    take(order, 10, 12, 13)
    order.release(10, 10)
    assert order.available_before(13) == [10]
    assert order.available_before(11) == []


def test_a_record_that_has_waited_and_is_held_is_not_available_any_more() -> None:
    order = order_of(A, A, run_max=2)
    order.hold_back(10, 10)
    order.release(10, 10)
    take(order, 10, 11)
    assert order.available_before(11) == []
