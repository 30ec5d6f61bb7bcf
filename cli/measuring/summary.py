"""The figures of one phase of a measurement: a rate, or the distribution of delays."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from barnabas.cli.printing import Printer

_BYTES_PER_MB = 1_000_000
_MS_PER_SECOND = 1000


class Throughput(NamedTuple):
    """The speed of one phase."""

    phase: str
    record_count: int
    record_bytes: int
    seconds: float
    cpu_seconds: float
    """The processor time of this process, the client, in the phase."""

    @property
    def records_per_second(self) -> float:
        return self.record_count / self.seconds

    @property
    def client_share(self) -> float:
        """The part of the time in which the client was busy: near 1, it is the limit, and not the broker."""
        return self.cpu_seconds / self.seconds


class Delays(NamedTuple):
    """The delays of single records, in seconds, ascending."""

    phase: str
    seconds: Sequence[float]

    def percentile_ms(self, percent: float) -> float:
        """The delay that this part of the records does not exceed (nearest rank)."""
        rank = max(ceil(len(self.seconds) * percent / 100), 1)
        return self.seconds[rank - 1] * _MS_PER_SECOND


def print_throughput(printer: Printer, figures: Throughput) -> None:
    megabytes = figures.records_per_second * figures.record_bytes / _BYTES_PER_MB
    row = {
        "type": "throughput",
        **figures._asdict(),
        "records_per_second": round(figures.records_per_second, 1),
        "megabytes_per_second": round(megabytes, 3),
        "client_share": round(figures.client_share, 3),
    }
    printer.result(
        row,
        f"{figures.phase:<16} {figures.records_per_second:>10,.0f} records/s  {megabytes:>8.2f} MB/s  "
        f"client busy {figures.client_share:.0%}",
    )


def print_delays(printer: Printer, delays: Delays) -> None:
    percentiles = {f"p{percent:g}_ms": round(delays.percentile_ms(percent), 2) for percent in (50, 90, 99)}
    highest_ms = round(delays.seconds[-1] * _MS_PER_SECOND, 2)
    row = {
        "type": "delays",
        "phase": delays.phase,
        "record_count": len(delays.seconds),
        **percentiles,
        "max_ms": highest_ms,
    }
    told = "  ".join(f"{name.removesuffix('_ms')} {value:.1f} ms" for name, value in percentiles.items())
    printer.result(row, f"{delays.phase:<16} {told}  max {highest_ms:.1f} ms")
