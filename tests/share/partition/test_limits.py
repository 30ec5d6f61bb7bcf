"""The figures by which records near their delivery limit are throttled."""

from __future__ import annotations

import pytest

from barnabas.share.partition.limits import is_delivered_alone, throttle_count_min, throttled_records_max


@pytest.mark.parametrize(
    ("delivery_count_max", "count_min"), [(2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (10, 5), (25, 13)]
)
def test_throttling_begins_at_half_of_the_limit(delivery_count_max: int, count_min: int) -> None:
    assert throttle_count_min(delivery_count_max) == count_min


def test_each_failed_delivery_halves_the_records() -> None:
    assert [throttled_records_max(500, count, 5) for count in (5, 6, 7, 8, 9)] == [250, 125, 62, 31, 15]
    assert throttled_records_max(1, 5, 5) == 1


@pytest.mark.parametrize(
    ("delivery_count", "delivery_count_max", "alone"),
    [(4, 5, True), (3, 5, False), (2, 3, True), (1, 2, False)],
)
def test_the_last_delivery_is_alone(delivery_count: int, delivery_count_max: int, alone: bool) -> None:
    assert is_delivered_alone(delivery_count, delivery_count_max) is alone
