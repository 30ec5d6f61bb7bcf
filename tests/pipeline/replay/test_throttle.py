"""The rate of rows is bounded; only sleeping moves the tests' clock."""

import pytest

from barnabas.pipeline.columnar import RecordBatch
from barnabas.pipeline.decoding.arrow import pa
from barnabas.pipeline.replay.throttle import Throttle, payload_bytes


class Clock:
    """Time that passes by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def batches(*counts: int) -> list[RecordBatch]:
    return [
        pa.RecordBatch.from_pydict(
            {"key": pa.array([None] * count, pa.binary()), "value": pa.array([b"0123456789"] * count)}
        )
        for count in counts
    ]


def throttled(throttle: Throttle, *counts: int) -> tuple[list[tuple[float, int]], float]:
    """The times at which rows came, with their numbers, and the time of the end, in seconds."""
    clock = Clock()
    came = [
        (clock.now - 100, part.num_rows)
        for part in throttle.throttled(iter(batches(*counts)), clock, clock.sleep)
    ]
    return came, clock.now - 100


def test_the_rate_of_records_is_bounded() -> None:
    came, seconds = throttled(Throttle(100, None), 250, 50)
    assert sum(count for _, count in came) == 300
    assert seconds == pytest.approx(3)
    for moment, _ in came:
        assert sum(count for when, count in came if moment <= when < moment + 0.999) <= 110, "a slice more"


def test_the_rate_of_bytes_is_bounded() -> None:
    came, seconds = throttled(Throttle(None, 1000), 500)
    assert sum(count for _, count in came) == 500
    assert seconds == pytest.approx(5)


def test_the_narrower_of_two_bounds_counts() -> None:
    assert throttled(Throttle(100, 100), 50)[1] == pytest.approx(5)
    assert throttled(Throttle(10, 100_000), 50)[1] == pytest.approx(5)


def test_a_rate_may_be_less_than_one_record_per_second() -> None:
    came, seconds = throttled(Throttle(0.5, None), 3)
    assert came == [(0, 1), (pytest.approx(2), 1), (pytest.approx(4), 1)]
    assert seconds == pytest.approx(6)


def test_an_unused_allowance_is_not_saved_up() -> None:
    clock = Clock()
    moments: list[float] = []
    for part in Throttle(10, None).throttled(iter(batches(1, 5)), clock, clock.sleep):
        moments.append(clock.now - 100)
        assert part.num_rows == 1
        if len(moments) == 1:
            clock.now += 60
    assert moments == [pytest.approx(moment) for moment in (0, 60, 60.1, 60.2, 60.3, 60.4)]


def test_keys_and_values_are_paid_for() -> None:
    batch = pa.RecordBatch.from_pydict({"key": [b"ab", None], "value": [b"cde", b""], "offset": [1, 2]})
    assert payload_bytes(batch) == 5
    assert payload_bytes(batch.slice(1)) == 0
