"""The common parts of target assignments of share groups and consumer groups."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordinator.group.target_assignment import (
    assignment_is_due,
    assignment_of,
    in_map_order,
    members_in_map_order,
)
from barnabas.protocol.topic_partitions import TopicPartitions

INTERVAL_MS = 1_000
NOW_MS = 50_000


def test_an_assignment_out_of_a_record_is_ascending_and_has_no_empty_topics() -> None:
    one = TopicPartitions(topic_id=UUID(int=1), partitions=(1, 0))
    empty = TopicPartitions(topic_id=UUID(int=9), partitions=())
    assert assignment_of([one, empty]) == {UUID(int=1): (0, 1)}


@pytest.mark.parametrize(
    ("last_ms", "is_due"),
    [
        pytest.param(0, True, id="nothing was assigned yet"),
        pytest.param(NOW_MS - INTERVAL_MS, True, id="the interval is over"),
        pytest.param(NOW_MS - INTERVAL_MS + 1, False, id="the interval is not over"),
        pytest.param(NOW_MS, False, id="just now"),
        pytest.param(NOW_MS + 1, True, id="the clock was set back"),
    ],
)
def test_an_assignment_is_due_an_interval_after_the_last_one(last_ms: int, is_due: bool) -> None:
    assert assignment_is_due(last_ms, INTERVAL_MS, NOW_MS) is is_due


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
