"""The ranks of records by their priorities, and the limit of overtaking."""

from __future__ import annotations

from barnabas.protocol.record_keys import NO_KEY
from barnabas.share.partition.acquisition import EVERYTHING
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.keyed_order import PARTS_MAX, order_of
from barnabas.share.partition.limits import AcquireMode, PriorityLimits, ShareLimits
from barnabas.share.partition.priorities import Priorities
from barnabas.share.partition.window import AVAILABLE, Batch, Run
from tests.share.partition.core import new_window, select_in_order

# pyright: reportPrivateUsage=false

EVERYWHERE = ((0, 1 << 40),)
A, B = 1, 2


def ordered(
    *priorities: int, keys: tuple[int, ...] = (), run_max: int = 0, overtaken_max: int = 100
) -> KeyOrder:
    """An order of records from offset 10 on."""
    order = KeyOrder(10, run_max, Priorities("priority", overtaken_max))
    order.add(range(10, 10 + len(priorities)), keys or [NO_KEY] * len(priorities), bytes(priorities))
    return order


def first(order: KeyOrder, count: int = 100) -> list[int]:
    return order.next_records(count, EVERYWHERE)


def take(order: KeyOrder, *offsets: int) -> int:
    """Members get the records; returns the number of those that overtook another one."""
    for offset in offsets:
        order.take(offset, offset)
    return order.note_delivered((offset, offset) for offset in offsets)


def test_higher_priorities_come_first_and_equal_ones_by_offset() -> None:
    assert first(ordered(0, 3, 9, 3, 0)) == [12, 11, 13, 10, 14]


def test_no_more_records_than_asked_for_are_chosen() -> None:
    assert first(ordered(0, 3, 9, 3, 0), 2) == [12, 11]


def test_records_outside_of_the_spans_are_passed_over() -> None:
    assert ordered(0, 3, 9, 3, 0).next_records(9, ((10, 11), (13, 13))) == [11, 13, 10]


def test_a_key_has_the_priority_of_its_urgent_record() -> None:
    order = ordered(0, 0, 9, keys=(A, B, B), run_max=1)
    assert first(order) == [11, 10]
    take(order, 11)
    assert first(order) == [10]
    order.finish(11, 11, was_held=True)
    assert first(order) == [12, 10]


def test_a_run_of_an_urgent_key_goes_together() -> None:
    order = ordered(0, 0, 9, 0, keys=(A, B, B, B), run_max=2)
    assert first(order) == [11, 12, 10]
    assert first(order, 1) == [11]


def test_a_released_record_has_its_priority_again() -> None:
    order = ordered(0, 9)
    take(order, 11)
    order.release(11, 11)
    assert first(order) == [11, 10]


def test_a_final_record_leaves_no_priority_behind() -> None:
    order = ordered(0, 9, keys=(A, A), run_max=2)
    assert order.priorities is not None
    order.finish(11, 11, was_held=False)
    assert not order.priorities.has_effect
    assert first(order) == [10]


def test_a_final_record_leaves_no_count_behind() -> None:
    order = ordered(0, 0, 9)
    take(order, 12)
    take(order, 10)
    order.release(10, 10)
    take(order, 10)
    order.finish(10, 10, was_held=True)
    assert order.priorities is not None
    assert not order.priorities._counted_before


def test_a_record_that_waits_is_not_chosen() -> None:
    order = ordered(0, 9)
    order.hold_back(11, 11)
    assert first(order) == [10]


def test_deliveries_are_counted_that_overtake() -> None:
    order = ordered(0, 9, 0, 9)
    assert take(order, 11, 13) == 2
    assert take(order, 10) == 0
    assert take(order, 12) == 0


def test_an_overdue_record_comes_before_all_priorities() -> None:
    order = ordered(0, 0, 9, 9, 9, overtaken_max=2)
    take(order, 12)
    assert first(order, 1) == [13]
    take(order, 13)
    assert first(order) == [10, 11, 14]


def test_a_record_counts_only_the_deliveries_behind_it() -> None:
    order = ordered(0, 9, 0, 9, 9, overtaken_max=2)
    take(order, 11)
    take(order, 13)
    assert first(order) == [10, 14, 12]


def test_a_record_that_comes_again_begins_to_count_again() -> None:
    order = ordered(0, 9, 9, 9, overtaken_max=2)
    take(order, 11)
    take(order, 12)
    take(order, 10)
    order.release(10, 10)
    assert first(order) == [13, 10]


def test_a_record_that_has_waited_for_its_key_begins_to_count_then() -> None:
    order = ordered(0, 0, 0, 9, 9, keys=(A, A, B, 3, 4), run_max=1, overtaken_max=1)
    take(order, 10)
    take(order, 13)
    order.finish(10, 10, was_held=True)
    assert first(order) == [12, 14, 11]


def test_a_redelivery_overtakes_as_well() -> None:
    order = ordered(0, 9, overtaken_max=2)
    for _ in range(2):
        assert first(order, 1) == [11]
        assert take(order, 11) == 1
        order.release(11, 11)
    assert first(order) == [10, 11]


def test_a_group_has_the_order_of_its_limits() -> None:
    plain = ShareLimits()
    urgent = plain._replace(priority=PriorityLimits("priority"))
    both = urgent._replace(key_run_max=1)
    for limits in (plain, urgent, both):
        order = order_of(0, limits)
        assert [one for one in (plain, urgent, both) if order.follows(one)] == [limits]
    other = plain._replace(priority=PriorityLimits("other"))
    assert not order_of(0, urgent).follows(other)


def test_the_first_records_of_their_keys_are_found_among_others() -> None:
    order = ordered(0, 0, 9, 0, keys=(A, A, B, B), run_max=2)
    assert first(order) == [12, 13, 10, 11]
    assert order.first_of_keys(first(order)) == [12, 10]


def test_a_record_near_the_delivery_limit_is_not_overtaken_by_the_next_one_of_its_key() -> None:
    """It is in a batch of its own, and the next one in that of the most urgent record."""
    in_flight = new_window(0)
    in_flight.append(Batch(0, 0, [Run(0, 0, AVAILABLE, 3)]))
    in_flight.append(Batch(1, 2, [Run(1, 2, AVAILABLE, 0)]))
    order = KeyOrder(3, 2, Priorities("priority", 100))
    order.add([0, 1, 2], [A, A, B], bytes([0, 0, 9]))
    assert first(order) == [2, 0, 1]
    limits = ShareLimits(delivery_count_max=5)
    selected = select_in_order(in_flight, order, 10, limits, AcquireMode.RECORD_LIMIT, EVERYTHING)
    assert selected == [(2, 2)]
    order.take(2, 2)
    selected = select_in_order(in_flight, order, 10, limits, AcquireMode.RECORD_LIMIT, ((0, 1),))
    assert selected == [(0, 0)]


def test_a_delivery_has_as_many_of_the_most_urgent_records_as_lie_in_few_ranges() -> None:
    count = 2 * PARTS_MAX + 6
    in_flight = new_window(0)
    in_flight.append(Batch(0, count - 1, [Run(0, count - 1, AVAILABLE, 0)]))
    order = KeyOrder(count, 0, Priorities("priority", 100))
    order.add(range(count), [NO_KEY] * count, bytes([1, 0] * 3 + [2, 0] * PARTS_MAX))
    selected = select_in_order(
        in_flight, order, PARTS_MAX + 3, ShareLimits(), AcquireMode.RECORD_LIMIT, EVERYTHING
    )
    assert selected == [(offset, offset) for offset in range(6, count, 2)]


def test_unfinished_records_are_shown_by_priority() -> None:
    order = ordered(0, 3, 3, 9)
    order.known_until = 14
    order.take(13, 13)
    assert list(order.priority_pieces(10, 13)) == [(10, 10, 0), (11, 12, 3), (13, 13, 9)]
    assert list(order.priority_pieces(12, 15)) == [(12, 12, 3), (13, 13, 9), (14, 15, None)]


def test_offsets_without_a_record_belong_to_the_piece_before_them() -> None:
    order = KeyOrder(20, 0, Priorities("priority", 100))
    order.add([10, 14, 17], [NO_KEY] * 3, bytes([5, 5, 0]))
    assert list(order.priority_pieces(9, 19)) == [(9, 16, 5), (17, 19, 0)]


def test_priorities_are_unknown_without_them_and_beside_a_batch_that_goes_alone() -> None:
    assert list(KeyOrder(20, 1).priority_pieces(10, 12)) == [(10, 12, None)]
    order = ordered(4, 4)
    order.known_until, order.alone = 12, (12, 15)
    assert list(order.priority_pieces(10, 15)) == [(10, 15, None)]
