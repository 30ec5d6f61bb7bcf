"""The monotonic times of times of day in records."""

from barnabas.runtime.moment import Moment, written_at

NOON_MS = 1_700_000_000_000
MOMENT = Moment(now_ms=5_000, wall_ms=NOON_MS)


def test_a_loaded_record_is_as_old_as_the_wall_clock_says() -> None:
    assert MOMENT.monotonic_of(NOON_MS - 3_000) == 2_000


def test_a_record_from_before_the_machine_started_has_a_negative_time() -> None:
    assert MOMENT.monotonic_of(NOON_MS - 8_000) == -3_000


def test_a_record_from_the_future_counts_as_new() -> None:
    assert MOMENT.monotonic_of(NOON_MS + 60_000) == 5_000


def test_a_record_that_is_written_now_is_new_whatever_the_wall_clock_says() -> None:
    assert written_at(5_000)(NOON_MS - 60_000) == 5_000
