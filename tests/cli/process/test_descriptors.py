"""The division of few descriptors, and the warning about them."""

import pytest

from barnabas.cli.process.descriptors import (
    SEGMENTS_MAX,
    SHARE_MIN,
    divide_descriptors,
    reserved_descriptors,
    warning,
)


@pytest.mark.parametrize("limit", [0, 64, 256, 1024, 4096, 20_000, 1_000_000])
def test_segments_and_connections_together_stay_within_the_limit(limit: int) -> None:
    segments, connections = divide_descriptors(limit)
    assert SHARE_MIN <= segments <= SEGMENTS_MAX
    assert connections >= SHARE_MIN
    assert segments + connections + reserved_descriptors() <= max(
        limit, reserved_descriptors() + 2 * SHARE_MIN
    )


def test_segments_get_no_more_than_connections() -> None:
    segments, connections = divide_descriptors(reserved_descriptors() + 500)
    assert (segments, connections) == (250, 250)


def test_a_small_limit_gives_a_warning_with_its_effect_and_a_remedy() -> None:
    said = warning(1024)
    assert said is not None
    segments, connections = divide_descriptors(1024)
    for part in ("1024 files", f"{segments} segments", f"{connections} clients", "LimitNOFILE"):
        assert part in said


def test_a_large_limit_gives_no_warning() -> None:
    assert warning(2 * SEGMENTS_MAX + reserved_descriptors()) is None
