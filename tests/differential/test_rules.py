"""The rules of the comparison, and the comparison of two answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.compare import MISSING, Comparison
from tests.differential.renumbering import Numbering, renumbered
from tests.differential.rules import RULES, allowing, is_ordered
from tests.differential.stage import BROKEN_OFF, Observation


def compared(kafka: Any, ours: Any, api: str = "heartbeat") -> Comparison:
    comparison = Comparison()
    comparison.add([Observation(api, 4, "", kafka)], [Observation(api, 4, "", ours)])
    return comparison


def test_each_rule_has_a_name_of_its_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("kafka", "ours", "path"),
    [
        ({"error_code": "none"}, {"error_code": "unknown_member_id"}, "error_code"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b"),
        ({"a": [{"name": "x", "b": 1}]}, {"a": [{"name": "x", "b": 2}]}, "a{x}.b"),
        ({"a": 1}, {}, "a"),
        ({"a": 1}, {"a": True}, "a"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": None}, {"a": ""}, "a"),
        ("the connection was closed", {"a": 1}, ""),
    ],
)
def test_a_difference_is_found_where_it_is(kafka: Any, ours: Any, path: str) -> None:
    (difference,) = compared(kafka, ours).real
    assert difference.path == path


def test_an_allowed_difference_is_counted_by_its_rule() -> None:
    comparison = compared({"throttle_time": 5, "a": 1}, {"throttle_time": 7, "a": 1})
    assert (comparison.real, comparison.allowed, comparison.field_count) == ([], {"throttle time": 1}, 2)


def test_lists_without_an_order_are_matched_by_the_identity_of_their_elements() -> None:
    kafka = {"groups": [{"group_id": "a", "x": 1}, {"group_id": "b", "x": 2}]}
    ours = {"groups": [{"group_id": "b", "x": 2}, {"group_id": "c", "x": 1}]}
    assert not is_ordered("describe_groups", "groups")
    found = [(one.path, one.kafka == MISSING) for one in compared(kafka, ours, "describe_groups").real]
    assert found == [("groups{a}", False), ("groups{c}", True)]


def test_a_rule_for_a_list_also_allows_equally_long_lists() -> None:
    fields = ("first_offset", "last_offset", "delivery_count")
    kafka, ours = (
        {"acquired_records": [dict(zip(fields, one, strict=True)) for one in ranges]}
        for ranges in ([(0, 9, 1), (11, 11, 1), (20, 29, 1)], [(0, 4, 1), (5, 9, 1), (20, 29, 1)])
    )
    comparison = compared(kafka, ours, "share_fetch")
    assert (comparison.real, comparison.allowed) == ([], {"lone markers": 1})


def test_the_rest_of_a_history_is_left_out_after_a_difference() -> None:
    comparison = Comparison()
    kafka = [Observation("heartbeat", 4, "", {"a": step}) for step in range(3)]
    ours = [Observation("heartbeat", 4, "", {"a": 2 * step}) for step in range(3)]
    (difference,) = comparison.add(kafka, ours)
    assert (difference.step, comparison.answer_count) == (1, 2)


def test_a_history_that_breaks_off_differs_from_every_other() -> None:
    broken = [Observation(BROKEN_OFF, 0, "", "broke off")]
    assert Comparison().add(broken, broken)


@pytest.mark.parametrize(
    ("path", "kafka", "ours", "name"),
    [
        ("responses{0}.acquired_records", [(0, 3, 1)], [(0, 1, 1), (2, 3, 1)], "acquired ranges"),
        ("responses{0}.acquired_records", [(0, 3, 1)], [(0, 1, 1), (2, 3, 2)], None),
        ("responses{0}.acquired_records", [(0, 3, 1)], [(0, 1, 1), (3, 3, 1)], None),
        ("responses{0}.acquired_records", [(0, 4, 3), (5, 9, 4)], [(0, 4, 3)], "throttled records"),
        ("responses{0}.acquired_records", [(0, 4, 3), (5, 9, 3)], [(0, 4, 3)], None),
        ("responses{0}.acquired_records", [(0, 4, 3), (5, 9, 4)], [(0, 3, 3)], None),
        ("responses{0}.acquired_records", [(0, 4, 3)], [(0, 4, 3), (5, 9, 4)], None),
        ("responses{0}.acquired_records", [(5, 5, 1)], [], "lone markers"),
        ("responses{0}.acquired_records", [(0, 0, 2), (1, 5, 1)], [(1, 3, 1), (4, 5, 1)], "lone markers"),
        ("responses{0}.acquired_records", [(9, 9, 3)], [(10, 12, 2), (13, 15, 2)], "lone markers"),
        ("responses{0}.acquired_records", [(9, 9, 2)], [(10, 15, 2)], None),
        ("responses{0}.acquired_records", [(9, 9, 3)], [(5, 8, 2)], None),
        ("responses{0}.acquired_records", [(8, 9, 3)], [(10, 15, 2)], None),
        ("responses{0}.acquired_records", [(5, 6, 1)], [], None),
        ("responses{0}.acquired_records", [(0, 5, 1)], [(0, 4, 1)], None),
        ("responses{0}.acquired_records", [], [(5, 5, 1)], None),
    ],
)
def test_acquired_ranges_may_come_in_pieces_or_leave_out_throttled_records_and_markers(
    path: str, kafka: Any, ours: Any, name: str | None
) -> None:
    fields = ("first_offset", "last_offset", "delivery_count")
    ranges = [[dict(zip(fields, one, strict=True)) for one in side] for side in (kafka, ours)]
    rule = allowing("share_fetch", path, *ranges)
    assert (rule and rule.name) == name


@pytest.mark.parametrize(
    ("kafka", "ours", "name"),
    [
        ([0, 10, 20], [0, 20], "batches between acquired records"),
        ([0, 10, 20], [0, 10], None),
        ([0, 10], [0, 10, 20], None),
        ([0, 10], [0, 10], None),
        ([0, 10, "part"], [0, 10], "partial batches"),
        ([0, 10, "part"], [0], None),
    ],
)
def test_batches_without_acquired_records_may_be_missing(
    kafka: list[Any], ours: list[int], name: str | None
) -> None:
    batches = [
        [{"cut_after_bytes": 5} if one == "part" else {"base_offset": one} for one in side]
        for side in (kafka, ours)
    ]
    rule = allowing("share_fetch", "responses{0}.partitions{0}.records", *batches)
    assert (rule and rule.name) == name


MARKER, DATA, DATA_PART = 48, 16, None


@pytest.mark.parametrize(
    ("kafka", "first_offset", "is_allowed"),
    [
        ([(5, MARKER), (6, DATA_PART)], 6, True),
        ([(5, DATA), (6, DATA_PART)], 6, False),
        ([(5, MARKER), (6, DATA_PART)], 5, False),
        ([(5, MARKER), (6, MARKER), (7, DATA)], 7, True),
        ([(5, MARKER), (6, DATA), (7, DATA)], 7, False),
    ],
)
def test_the_marker_before_the_records_may_be_missing(
    kafka: list[tuple[int, int | None]], first_offset: int, is_allowed: bool
) -> None:
    batches = [
        {"cut_after_bytes": 5}
        if attributes is DATA_PART
        else {"base_offset": offset, "attributes": attributes}
        for offset, attributes in kafka
    ]
    ours = [{"base_offset": first_offset, "attributes": DATA}]
    rule = allowing("share_fetch", "responses{0}.partitions{0}.records", batches, ours)
    assert (rule is not None and rule.name == "markers before records") == is_allowed


@pytest.mark.parametrize(
    ("batches", "acquired", "is_allowed"),
    [
        ([(5, MARKER)], [5], True),
        ([(5, DATA)], [5], False),
        ([(5, MARKER), (6, DATA), (10, MARKER)], [5, 10], True),
        ([(5, MARKER), (6, DATA), (10, MARKER)], [5, 6], False),
        ([(5, MARKER)], [], False),
    ],
)
@pytest.mark.parametrize("path", ["responses{t}", "responses{t}.partitions{0}"])
def test_a_partition_may_be_missing_if_only_markers_are_acquired_of_it(
    path: str, batches: list[tuple[int, int]], acquired: list[int], is_allowed: bool
) -> None:
    partition = {
        "records": [{"base_offset": offset, "attributes": attributes} for offset, attributes in batches],
        "acquired_records": [
            {"first_offset": offset, "last_offset": offset, "delivery_count": 1} for offset in acquired
        ],
    }
    kafka = partition if "partitions" in path else {"partitions": [partition]}
    assert (allowing("share_fetch", path, kafka, MISSING) is not None) == is_allowed
    assert allowing("share_fetch", path, MISSING, kafka) is None


@pytest.mark.parametrize(("kafka", "ours", "is_allowed"), [(25, 16, True), (16, 25, False), (25, -1, False)])
def test_lag_may_be_less_only_while_removed_records_are_not_written_as_such(
    kafka: int, ours: int, is_allowed: bool
) -> None:
    api = "describe_share_group_offsets"
    assert (allowing(api, "lag_unwritten", kafka, ours) is not None) == is_allowed
    assert allowing(api, "groups{g}.topics{t}.partitions{0}.lag", kafka, ours) is None


@pytest.mark.parametrize(
    ("kafka", "ours", "is_allowed"), [(4, -1, True), (1, 4, True), (-1, 4, False), (-1, -2, False)]
)
@pytest.mark.parametrize("field", ["offset", "leader_epoch"])
def test_deleted_records_may_count_for_the_greatest_timestamp_in_kafka(
    field: str, kafka: int, ours: int, is_allowed: bool
) -> None:
    path = "topics{t}.partitions{0}"
    assert (allowing("list_offsets", f"{path}.{field}_of_rest", kafka, ours) is not None) == is_allowed
    assert allowing("list_offsets", f"{path}.{field}", kafka, ours) is None


def test_offsets_are_numbered_by_the_records_below_them() -> None:
    numbering = Numbering()
    numbering.add(0, 2)
    numbering.add(5, 2)
    assert [numbering.number(offset) for offset in (-1, 0, 1, 2, 5, 6, 7)] == [-1, 0, 1, 2, 2, 3, 4]
    assert [numbering.offset(number) for number in (0, 2, 3, 4, 6)] == [0, 5, 6, 7, 9]
    partitions = [{"partition_index": 0, "records": [{"base_offset": 5, "other": 5}]}]
    answer = {"topic_id": "a", "partitions": partitions}
    assert renumbered(answer, {("a", 0): numbering}) == {
        "topic_id": "a",
        "partitions": [{"partition_index": 0, "records": [{"base_offset": 2, "other": 5}]}],
    }
    assert renumbered(answer, {("a", 1): numbering, ("b", 0): numbering}) == answer
