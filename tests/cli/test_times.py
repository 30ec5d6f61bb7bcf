"""Times and durations on the command line."""

from __future__ import annotations

import pytest

from barnabas.cli.times import parse_duration_ms, parse_time_ms

WRITTEN_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2023-11-14T22:13:20", WRITTEN_MS),
        ("2023-11-14T23:13:20.5+01:00", WRITTEN_MS + 500),
        ("1970-01-02", 86_400_000),
    ],
)
def test_times_are_in_utc_without_a_zone(text: str, time_ms: int) -> None:
    assert parse_time_ms(text) == time_ms


def test_another_time_is_refused_with_an_example() -> None:
    with pytest.raises(ValueError, match="'yesterday' is not a time such as 2026-01-31T12:00"):
        parse_time_ms("yesterday")


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("90s", 90_000), ("15m", 900_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("0s", 0)],
)
def test_a_duration_is_a_sum_of_numbers_with_units(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "90", "s", "1.5h", "-1s", "1s ", "1y", "²s", "1s2"])
def test_another_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 500ms, 90s, 15m, 1h30m or 7d"):
        parse_duration_ms(text)
