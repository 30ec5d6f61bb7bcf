"""The rate of records: the batches before the last one take the time that the limit demands."""

from __future__ import annotations

import pytest

from barnabas.cli.dead_letters.throttle import Throttle


def test_without_a_limit_batches_are_full_and_never_wait() -> None:
    throttle = Throttle(None)
    throttle.note(1_000, 5.0)
    assert (throttle.batch_records(100), throttle.wait_seconds(5.0)) == (100, 0.0)


@pytest.mark.parametrize(("rate", "batch"), [(0.5, 1), (7.9, 7), (100.0, 100), (1e9, 100)])
def test_a_batch_has_the_records_of_one_second_at_most(rate: float, batch: int) -> None:
    assert Throttle(rate).batch_records(100) == batch


def test_each_batch_waits_for_the_time_of_the_batch_before() -> None:
    throttle = Throttle(10.0)
    assert throttle.wait_seconds(100.0) == 0.0
    throttle.note(5, 100.0)
    assert throttle.wait_seconds(100.2) == pytest.approx(0.3)
    throttle.note(10, 100.5)
    assert throttle.wait_seconds(100.5) == pytest.approx(1.0)


def test_time_without_records_is_not_saved_up() -> None:
    throttle = Throttle(10.0)
    throttle.note(5, 100.0)
    throttle.note(10, 200.0)
    assert throttle.wait_seconds(200.0) == pytest.approx(1.0)
