"""Scales and steps of time in the report's charts."""

from datetime import UTC, datetime, timedelta

import pytest

from barnabas.pipeline.audit.charts import Scale, TimeLane, time_lanes
from barnabas.pipeline.audit.summary import BUCKETS_MAX, bucket_minutes

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_numbers_that_are_alike_have_a_linear_scale() -> None:
    scale = Scale([10, 20, 100, 0])
    assert [scale.length(value) for value in (0, 10, 50, 100)] == [0.0, 0.1, 0.5, 1.0]
    assert scale.hint == ""


def test_numbers_far_apart_have_a_logarithmic_scale_that_shows_one() -> None:
    scale = Scale([1, 70_000_000])
    assert scale.length(1) > 0.03
    assert scale.length(100_000_000) == 1.0
    assert scale.length(0) == 0.0
    assert "Logarithmic" in scale.hint


def test_a_chart_of_nothing_has_a_scale() -> None:
    assert Scale([]).length(0) == 0.0


@pytest.mark.parametrize(
    ("minutes", "step"),
    [(1, 1), (60, 1), (61, 2), (121, 5), (600, 10), (601, 15), (3600, 60), (86_400, 1440), (86_401, 2880)],
)
def test_time_is_cut_into_round_steps(minutes: int, step: int) -> None:
    assert bucket_minutes(minutes) == step
    assert minutes <= step * BUCKETS_MAX


def test_a_moment_alone_is_a_chart() -> None:
    lane = TimeLane("acknowledged", {NOON: 5})
    drawn = time_lanes("text", [lane], timedelta(minutes=1), Scale([5]))
    assert drawn.count("<i ") == 1
    assert "12:00<br>01-31" in drawn
