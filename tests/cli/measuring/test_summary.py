"""The figures of a measurement."""

from __future__ import annotations

import io
import json

import pytest

from barnabas.cli.measuring.summary import Delays, Throughput, print_delays, print_throughput
from barnabas.cli.printing import Printer


def test_a_speed_is_printed_with_the_work_of_the_client() -> None:
    out = io.StringIO()
    print_throughput(Printer(as_json=False, out=out), Throughput("produce", 10_000, 100, 2.0, 1.5))
    assert out.getvalue().split() == [
        "produce",
        "5,000",
        "records/s",
        "0.50",
        "MB/s",
        "client",
        "busy",
        "75%",
    ]


@pytest.mark.parametrize(
    ("percent", "expected_ms"), [(50, 50.0), (90, 90.0), (99, 99.0), (100, 100.0), (0, 1.0)]
)
def test_a_percentile_is_a_delay_that_occurred(percent: float, expected_ms: float) -> None:
    delays = Delays("delay", [number / 1000 for number in range(1, 101)])
    assert delays.percentile_ms(percent) == pytest.approx(expected_ms)


def test_delays_are_rows_as_json() -> None:
    out = io.StringIO()
    print_delays(Printer(as_json=True, out=out), Delays("delay", [0.001, 0.003]))
    assert json.loads(out.getvalue()) == {
        "type": "delays",
        "phase": "delay",
        "record_count": 2,
        "p50_ms": 1.0,
        "p90_ms": 3.0,
        "p99_ms": 3.0,
        "max_ms": 3.0,
    }
