"""Rates over windows: the arithmetic of Kafka's quotas, with results of Kafka 4.3.1."""

import pytest

from barnabas.broker.quotas.windowed_rate import WindowedRate

BOUND = 20_000.0


@pytest.fixture
def rate() -> WindowedRate:
    """Kafka's default: 11 samples of a second."""
    return WindowedRate(11, 1000)


def test_nothing_recorded_is_within_any_bound(rate: WindowedRate) -> None:
    assert rate.throttle_ms(1, 0) == 0


def test_a_burst_is_spread_over_ten_seconds(rate: WindowedRate) -> None:
    rate.record(200_000, 0)
    assert rate.throttle_ms(BOUND, 0) == 0
    rate.record(50_000, 0)
    assert rate.throttle_ms(BOUND, 0) == 2500


def test_a_wait_shortens_the_next_one_by_less_than_it_lasts(rate: WindowedRate) -> None:
    rate.record(250_000, 0)
    # Of the current sample only the time so far counts, of the others all.
    assert [rate.throttle_ms(BOUND, now_ms) for now_ms in (0, 500, 2500, 10_500)] == [2500, 2000, 2000, 2000]
    assert rate.throttle_ms(BOUND, 11_000) == 0


def test_the_time_counts_from_the_oldest_sample(rate: WindowedRate) -> None:
    rate.record(100_000, 0)
    rate.record(150_000, 10_000)
    assert rate.throttle_ms(BOUND, 10_000) == 2500


def test_values_older_than_all_samples_are_dropped(rate: WindowedRate) -> None:
    rate.record(1_000_000, 0)
    assert rate.throttle_ms(BOUND, 10_999) > 0
    assert rate.throttle_ms(BOUND, 11_000) == 0


def test_a_sample_that_lies_partly_within_the_time_counts_whole(rate: WindowedRate) -> None:
    rate.record(100_000, 0)
    rate.record(100_000, 900)
    rate.record(60_000, 11_500)
    # The sample of 0 to 900 ms was recorded to within the last 11 seconds: 260,000 in 11.5 seconds.
    assert rate.throttle_ms(BOUND, 11_500) == 1500


def test_samples_are_used_again(rate: WindowedRate) -> None:
    for second in range(100):
        rate.record(BOUND, second * 1000)
    assert rate.throttle_ms(BOUND * 1.2, 99_000) == 0
    assert rate.throttle_ms(BOUND / 2, 99_000) > 0


def test_a_record_can_be_reverted(rate: WindowedRate) -> None:
    rate.record(300_000, 5)
    rate.record(-300_000, 5)
    assert rate.throttle_ms(1, 5) == 0


def test_one_sample_is_averaged_over_the_time_so_far(rate: WindowedRate) -> None:
    single = WindowedRate(1, 1000)
    single.record(10, 0)
    assert single.throttle_ms(10, 1) == 999


def test_a_rate_without_records_is_idle(rate: WindowedRate) -> None:
    assert rate.is_idle(0, 10)
    rate.record(1, 5)
    assert not rate.is_idle(14, 10)
    assert rate.is_idle(15, 10)
