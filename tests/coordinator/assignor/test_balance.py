"""Quotas, and the filling step's corner cases on bare slots."""

import pytest

from barnabas.coordinator.assignor.balance import Balance, quotas_of, sharing_of


@pytest.mark.parametrize(
    ("members", "partitions", "sharing"), [(0, 5, 0), (4, 0, 0), (1, 9, 1), (4, 3, 2), (9, 3, 3)]
)
def test_sharing_is_members_per_partition_rounded_up(members: int, partitions: int, sharing: int) -> None:
    assert sharing_of(members, partitions) == sharing


@pytest.mark.parametrize(
    ("members", "partitions", "quotas"),
    [(0, 3, ()), (3, 0, (0, 0, 0)), (3, 10, (4, 3, 3)), (4, 3, (2, 1, 2, 1)), (2, 1, (1, 1))],
)
def test_quotas_differ_by_at_most_one(members: int, partitions: int, quotas: tuple[int, ...]) -> None:
    assert quotas_of(members, partitions) == quotas


def _balanced(
    previous: dict[int, list[int]], targets: list[int], *, sharing: int, quotas: dict[int, int]
) -> dict[int, list[int]]:
    balance = Balance(previous, targets, sharing, quotas)
    balance.run()
    return {**previous, **balance.changes}


def test_a_slot_whose_unfilled_members_all_hold_it_stays_short() -> None:
    assert _balanced({0: [0]}, [0], sharing=2, quotas={0: 2}) == {0: [0]}


def test_a_slot_stays_short_when_no_member_is_below_its_quota() -> None:
    assert _balanced({}, [0], sharing=3, quotas={0: 1, 1: 1}) == {0: [0], 1: [0]}


def test_a_member_met_twice_for_one_slot_holds_it_once() -> None:
    held = _balanced({}, [0, 1], sharing=3, quotas={0: 2, 1: 2})
    assert {member: sorted(slots) for member, slots in held.items()} == {0: [0, 1], 1: [0, 1]}


def test_a_member_that_unsubscribed_loses_all() -> None:
    assert _balanced({0: [0, 1]}, [0, 1], sharing=1, quotas={1: 2}) == {0: [], 1: [0, 1]}


def test_a_slot_held_too_often_loses_the_first_members() -> None:
    held = _balanced({0: [0], 1: [0], 2: [0]}, [0], sharing=1, quotas={0: 1, 1: 1, 2: 1})
    assert held == {0: [], 1: [], 2: [0]}


def test_unchanged_pairs_are_not_in_the_result() -> None:
    previous = {0: [0], 1: [1], 2: [2]}
    balance = Balance(previous, [0, 1, 2, 3], sharing=1, quotas={0: 1, 1: 1, 2: 1, 3: 1})
    balance.run()
    assert balance.changes == {3: [3]}
    assert previous == {0: [0], 1: [1], 2: [2]}
