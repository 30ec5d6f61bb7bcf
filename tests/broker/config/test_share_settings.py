"""Durations and the offset reset policy of share groups."""

import pytest

from barnabas.broker.config.share_settings import auto_offset_reset, duration_ms
from barnabas.share.fetch.share_group_config import AutoOffsetReset


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("pt1h", 3_600_000),
        ("P2D", 172_800_000),
        ("P1DT1H1M1.5S", 90_061_500),
        ("PT0S", 0),
        ("-PT1S", -1000),
        ("PT-1S", -1000),
        ("PT0,25S", 250),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("1H", None),
        ("P1W", None),
        ("PT1.5H", None),
        ("", None),
        ("P99999999999999D", None),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, milliseconds: int | None) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("latest", AutoOffsetReset("latest")),
        ("earliest", AutoOffsetReset("earliest")),
        ("by_duration:PT10M", AutoOffsetReset("by_duration", 600_000)),
        ("by_duration:PT0S", AutoOffsetReset("by_duration", 0)),
        ("by_duration:-PT1S", None),
        ("by_duration", None),
        ("by_duration:", None),
        ("by_duration:x", None),
        ("none", None),
        ("Latest", None),
    ],
)
def test_the_reset_policy_has_three_forms(text: str, reset: AutoOffsetReset | None) -> None:
    assert auto_offset_reset(text) == reset
