"""The ranges that an inspection shows. The models compare them with naive ones after random operations."""

from __future__ import annotations

from itertools import islice

from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.protocol.record_inspection import DescribedState, Wait
from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.inspection import InspectedRange, InspectionBounds, failed_delivery_count
from barnabas.share.partition.key_order import BatchKeys
from tests.share.partition.leader import ACCEPT, LIMITS, REJECT, RELEASE, Leader
from tests.share.partition.ordered_leader import OrderedLeader

STATE = DescribedState


def inspected(
    leader: Leader, first_offset: int = 0, *, upper_offset: int | None = None, log_start_offset: int = 0
) -> list[InspectedRange]:
    end = leader.log_end_offset
    bounds = InspectionBounds(
        first_offset, log_start_offset, end if upper_offset is None else upper_offset, end
    )
    return list(leader.partition.inspect(leader.limits, bounds))


def short(ranges: list[InspectedRange]) -> list[tuple[int, int, str]]:
    return [(one.first_offset, one.last_offset, one.state.name) for one in ranges]


def test_a_delivery_has_failed_when_it_ended_and_the_record_is_not_final() -> None:
    leader = Leader().produce(6)
    leader.fetch()
    leader.acknowledge(0, 0, ACCEPT)
    leader.acknowledge(2, 3, RELEASE)
    leader.fetch()
    leader.acknowledge(3, 3, RELEASE)
    leader.produce(1)
    failed = [(one.first_offset, failed_delivery_count(one)) for one in inspected(leader)]
    assert failed == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 0), (6, 0)]


def test_all_states_are_shown_from_the_start_of_the_log_to_its_end() -> None:
    leader = Leader().produce(6)
    leader.fetch()
    leader.acknowledge(0, 0, ACCEPT)
    leader.acknowledge(2, 2, REJECT)
    leader.acknowledge(3, 3, RELEASE)
    leader.produce(2)
    assert inspected(leader) == [
        InspectedRange(0, 0, STATE.PASSED, -1),
        InspectedRange(1, 1, STATE.ACQUIRED, 1, Wait.NOTHING, "member-1", 1_000),
        InspectedRange(2, 2, STATE.ARCHIVED, 1),
        InspectedRange(3, 3, STATE.AVAILABLE, 1),
        InspectedRange(4, 5, STATE.ACQUIRED, 1, Wait.NOTHING, "member-1", 1_000),
        InspectedRange(6, 7, STATE.NEW, 0),
    ]
    assert short(inspected(leader, 5)) == [(5, 5, "ACQUIRED"), (6, 7, "NEW")]
    assert short(inspected(leader, log_start_offset=4)) == [(4, 5, "ACQUIRED"), (6, 7, "NEW")]


def test_equal_neighbours_of_several_batches_are_one_range_across_control_offsets() -> None:
    leader = Leader().produce(3).control(2).produce(3, 2)
    leader.fetch(batch_size=1)
    assert short(inspected(leader)) == [(0, 9, "ACQUIRED")]


def test_ranges_begin_and_end_with_records() -> None:
    leader = Leader().produce(2).control(2).produce(2).control(3)
    leader.fetch(records_max=2)
    assert short(inspected(leader)) == [(0, 1, "ACQUIRED"), (4, 5, "NEW")]
    assert short(inspected(leader, 2)) == [(4, 5, "NEW")]
    assert inspected(leader, 6) == []


def test_nothing_is_shown_before_the_group_has_begun() -> None:
    assert inspected(Leader(-1).produce(3)) == []


def test_a_pending_change_is_a_reason_to_wait() -> None:
    leader = Leader().produce(3)
    leader.fetch()
    decision = leader.decide(1, 1, ACCEPT)
    assert [one.wait for one in inspected(leader)] == [Wait.NOTHING, Wait.RECORDING, Wait.NOTHING]
    leader.record(decision)
    assert [one.wait for one in inspected(leader)] == [Wait.NOTHING] * 3


def test_new_records_wait_for_the_window_and_for_transactions() -> None:
    leader = Leader(limits=LIMITS._replace(record_locks_max=3)).produce(3, 4)
    leader.fetch()
    leader.limits = LIMITS._replace(record_locks_max=3)
    found = inspected(leader, upper_offset=5)
    assert short(found) == [(0, 2, "ACQUIRED"), (3, 4, "NEW"), (5, 6, "NEW")]
    assert [one.wait for one in found] == [Wait.NOTHING, Wait.WINDOW, Wait.TRANSACTION]


def test_a_change_of_the_order_waits_for_the_locks() -> None:
    leader = Leader().produce(3)
    leader.fetch()
    leader.acknowledge(0, 0, RELEASE)
    leader.produce(1)
    leader.limits = LIMITS._replace(key_run_max=1)
    assert [one.wait for one in inspected(leader)] == [
        Wait.ORDER_CHANGE,
        Wait.NOTHING,
        Wait.ORDER_CHANGE,
    ]


def test_a_record_whose_key_is_not_known_yet_does_not_wait_for_it() -> None:
    released = StateRange(0, 3, RecordState.AVAILABLE, 1)
    leader = OrderedLeader(KeyHashes([0, 1, 2], [7, 7, 7]), key_run_max=1, states=(released,))
    assert leader.take("member-1") == {0: 2}
    leader.produce(1)
    assert leader.partition.keys_until == 3
    assert [(*one[:2], one.wait) for one in inspected(leader)] == [
        (0, 0, Wait.NOTHING),
        (1, 2, Wait.KEY),
        (3, 3, Wait.NOTHING),
    ]


def test_records_behind_a_batch_that_is_delivered_alone_wait_for_all_before_them() -> None:
    released = StateRange(0, 7, RecordState.AVAILABLE, 1)
    alone = BatchKeys(3, 5, None)
    leader = OrderedLeader(KeyHashes([0, 1, 2], [7, 7, 7]), alone, key_run_max=1, states=(released,))
    assert leader.take("member-1") == {0: 2}
    leader.produce(2)
    assert [(*one[:2], one.wait) for one in inspected(leader)] == [(0, 0, Wait.NOTHING), (1, 7, Wait.KEY)]


def test_only_the_ranges_that_are_taken_are_computed() -> None:
    leader = Leader().produce(100)
    leader.fetch()
    for offset in range(1, 100, 2):
        leader.acknowledge(offset, offset, RELEASE)
    bounds = InspectionBounds(0, 0, 100, 100)
    first = list(islice(leader.partition.inspect(leader.limits, bounds), 3))
    assert short(first) == [(0, 0, "ACQUIRED"), (1, 1, "AVAILABLE"), (2, 2, "ACQUIRED")]
