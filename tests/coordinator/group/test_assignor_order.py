"""The order in which members and topics go to the assignors."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group.assignor_order import in_map_order, members_in_map_order


def test_topics_come_in_the_order_of_a_hash_maps_buckets() -> None:
    # A letter's hash is its code: of sixteen buckets p is in the first, a and q are in the second.
    assert in_map_order({"q", "a", "p"}) == ["p", "a", "q"]


def test_topics_with_one_hash_come_in_the_order_of_their_names() -> None:
    assert in_map_order(["BB", "Aa"]) == ["Aa", "BB"]


@pytest.mark.parametrize("joined", [["a", "p"], ["p", "a"]], ids=str)
def test_members_come_in_the_same_order_in_any_order_of_joining(joined: list[str]) -> None:
    assert members_in_map_order(joined, "a") == ["p", "a"]


def test_a_new_member_is_one_of_them() -> None:
    assert members_in_map_order(["a"], "p") == ["p", "a"]
