"""Durations in messages."""

from __future__ import annotations

import datetime

import pytest

from barnabas.protocol.primitive import milliseconds, to_milliseconds


@pytest.mark.parametrize("ms", [-(2**31), -1, 0, 1, 999, 30_000, 2**31 - 1])
def test_milliseconds_survive_conversion(ms: int) -> None:
    assert to_milliseconds(milliseconds(ms)) == ms


def test_a_duration_beyond_32_bits_is_refused() -> None:
    with pytest.raises(TypeError):
        milliseconds(2**31)


def test_durations_are_cached() -> None:
    assert milliseconds(500) is milliseconds(500)
    assert milliseconds(500) == datetime.timedelta(seconds=0.5)
