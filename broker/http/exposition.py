"""The broker's metrics in the formats of Prometheus: OpenMetrics, and the older text format.

The values are those of `runtime/metrics.py`, read when they are asked for. One family is written at a time,
and other work runs between two of them. Each has at most `SERIES_MAX` label sets; the rest is added up in
one series, whose labels are all `OTHERS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from typing import Final, TypeVar

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from barnabas.runtime.metrics import Histogram, Labelled, Labels, Metrics

SERIES_MAX: Final = 1_000
"""The most label sets of one family."""

OTHERS: Final = "(others)"
"""The value of every label of the series that stands for the rest; no topic has such a name."""

MERGED: Final = "barnabas_metrics_merged_series"
"""Its value is the number of label sets that are only in the sum of the rest, by family."""

_DOCUMENTATION: Final = "See docs/metrics.md of Barnabas."
_END: Final = b"# EOF\n"
_TOTAL: Final = "_total"

_process = ProcessCollector(registry=None)
"""Memory, processor time and open files of this process (Linux)."""


_ValueT = TypeVar("_ValueT", float, Histogram)


async def expose(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """The body and its content type, by the header Accept of the request."""
    encode, content_type = choose_encoder(accept)
    parts: list[bytes] = []
    for family in _families(metrics):
        parts.append(encode(_One(family)))
        await asyncio.sleep(0)
    has_end = parts[-1].endswith(_END)
    body = b"".join(part.removesuffix(_END) for part in parts)
    return body + (_END if has_end else b""), content_type


class _One(Collector):
    """One family, as the encoders want it."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _families(metrics: Metrics) -> Iterator[Metric]:
    merged = GaugeMetricFamily(MERGED, _DOCUMENTATION, labels=["family"])
    for name, numbers in metrics.numbers():
        kept, rest = _bounded(numbers)
        if rest:
            merged.add_metric([name], len(rest))
            kept.append((_others(rest), sum(value for _, value in rest)))
        yield _number_family(name, kept)
    for name, histograms in metrics.distributions():
        kept_histograms, rest_histograms = _bounded(histograms)
        if rest_histograms:
            merged.add_metric([name], len(rest_histograms))
            kept_histograms.append((_others(rest_histograms), _sum(rest_histograms)))
        yield _histogram_family(name, kept_histograms)
    yield merged
    yield from _process.collect()


def _bounded(
    labelled: Labelled[_ValueT],
) -> tuple[list[tuple[Labels, _ValueT]], list[tuple[Labels, _ValueT]]]:
    """The values that have their own series, and the rest. The choice follows the labels, not the values, so
    that it stays the same from one look to the next.
    """
    values = list(labelled)
    if len(values) <= SERIES_MAX:
        return values, []
    kept = nsmallest(SERIES_MAX - 1, range(len(values)), key=lambda index: sorted(values[index][0].items()))
    chosen = set(kept)
    return [values[index] for index in kept], [one for index, one in enumerate(values) if index not in chosen]


def _others(rest: list[tuple[Labels, _ValueT]]) -> Labels:
    return dict.fromkeys(rest[0][0], OTHERS)


def _sum(rest: list[tuple[Labels, Histogram]]) -> Histogram:
    total = rest[0][1]
    for _, histogram in rest[1:]:
        total = total.plus(histogram)
    return total


def _number_family(name: str, values: list[tuple[Labels, float]]) -> Metric:
    """A family may have values with different labels, as those of a topic and of all topics."""
    is_counter = name.endswith(_TOTAL)
    family: Metric = (CounterMetricFamily if is_counter else GaugeMetricFamily)(name, _DOCUMENTATION)
    for labels, value in values:
        family.add_sample(name, dict(labels), value)
    return family


def _histogram_family(name: str, values: list[tuple[Labels, Histogram]]) -> Metric:
    family = HistogramMetricFamily(name, _DOCUMENTATION)
    for labels, histogram in values:
        for bound, count in histogram.buckets():
            family.add_sample(f"{name}_bucket", {**labels, "le": _le(bound)}, count)
        family.add_sample(f"{name}_count", dict(labels), histogram.count)
        family.add_sample(f"{name}_sum", dict(labels), histogram.total)
    return family


def _le(bound: str) -> str:
    """OpenMetrics writes the bounds as decimal numbers, and the last one as it is."""
    return bound if bound == "+Inf" else f"{bound}.0"
