"""The registry of metrics, and its snapshot."""

import pytest

from barnabas.runtime.metrics import Histogram, Metrics


def test_a_counter_is_the_same_one_for_the_same_labels() -> None:
    metrics = Metrics()
    metrics.counter("met_total", who="a", where="b").add()
    metrics.counter("met_total", where="b", who="a").add(2)
    metrics.counter("met_total", who="b", where="b").add()
    assert metrics.snapshot() == {"met_total{where=b,who=a}": 3, "met_total{where=b,who=b}": 1}


def test_gauges_and_families_are_read_when_asked_for() -> None:
    metrics, values = Metrics(), [1.0]
    metrics.gauge("level", lambda: values[0])
    metrics.family("by_topic", lambda: [({"topic": "t"}, value) for value in values])
    values[0] = 7
    assert metrics.snapshot() == {"level": 7, "by_topic{topic=t}": 7}


def test_a_histogram_reads_as_buckets_count_and_sum() -> None:
    metrics, histogram = Metrics(), Histogram((1, 10))
    for value in (0, 1, 2, 10, 11):
        histogram.observe(value)
    metrics.histograms("wait_ms", lambda: [({"group": "g"}, histogram)])
    assert metrics.snapshot() == {
        "wait_ms_bucket{group=g,le=1}": 2,
        "wait_ms_bucket{group=g,le=10}": 4,
        "wait_ms_bucket{group=g,le=+Inf}": 5,
        "wait_ms_count{group=g}": 5,
        "wait_ms_sum{group=g}": 24,
    }


@pytest.mark.parametrize("times_zero", [0, 3])
def test_histograms_add_up(times_zero: int) -> None:
    one, other = Histogram((0, 10)), Histogram((0, 10))
    one.observe(5)
    other.observe(50)
    both = one.plus(other, times_zero=times_zero)
    assert (both.count, both.total) == (2 + times_zero, 55)
    assert list(both.buckets()) == [("0", times_zero), ("10", times_zero + 1), ("+Inf", times_zero + 2)]
    assert (one.count, other.count) == (1, 1)
