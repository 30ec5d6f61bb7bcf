"""The broker's metrics in the formats of Prometheus: OpenMetrics, and the older text format.

The values are those of `runtime/metrics.py`, read when they are asked for. One family is written at a time,
and other work runs between two of them. Each has at most `SERIES_MAX` label sets; the rest is added up in
one series, whose labels are all `OTHERS`. Of ages that series has the greatest.

Prometheus's library negotiates the format and has the metrics of the process. It needs ten times the time of
`_number_lines` for a line, which is too long on the loop's one thread (decision 33), so these lines are
written here; tests read them with its parsers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Final, NamedTuple, TypeVar

from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector

from barnabas.broker.http.metric_help import help_texts
from barnabas.runtime.metrics import Histogram, Labelled, Labels, Metrics

SERIES_MAX: Final = 1_000
"""The most label sets of one family."""

OTHERS: Final = "(others)"
"""The value of every label of the series that stands for the rest; no topic has such a name."""

MERGED: Final = "barnabas_metrics_merged_series"
"""Its value is the number of label sets that are only in the sum of the rest, by family."""

_OPENMETRICS: Final = "application/openmetrics-text"
_END: Final = b"# EOF\n"
_TOTAL: Final = "_total"
_AGE: Final = "_age_ms"
"""The end of the names of ages. Their sum would say nothing."""

_process = ProcessCollector(registry=None)
"""Memory, processor time and open files of this process (Linux)."""

_ValueT = TypeVar("_ValueT", float, Histogram)


class _Written(NamedTuple):
    """A family in lines, and the number of values that are only in the sum of the rest."""

    merged_count: int
    name: str
    lines: str


async def expose(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """The body and its content type, by the header Accept of the request."""
    encode, content_type = choose_encoder(accept)
    is_openmetrics = content_type.startswith(_OPENMETRICS)
    parts: list[bytes] = []
    merged: list[tuple[Labels, float]] = []
    for family in _families(metrics, is_openmetrics=is_openmetrics):
        parts.append(family.lines.encode())
        if family.merged_count:
            merged.append(({"family": family.name}, family.merged_count))
        await asyncio.sleep(0)
    parts.append(_number_lines(MERGED, merged, is_openmetrics=is_openmetrics).encode())
    parts.append(encode(_process).removesuffix(_END))
    return b"".join(parts) + (_END if is_openmetrics else b""), content_type


def _families(metrics: Metrics, *, is_openmetrics: bool) -> Iterator[_Written]:
    for name, numbers in metrics.numbers():
        kept, rest = _bounded(numbers)
        if rest:
            merge = max if name.endswith(_AGE) else sum
            kept.append((_others(rest), merge(value for _, value in rest)))
        yield _Written(len(rest), name, _number_lines(name, kept, is_openmetrics=is_openmetrics))
    for name, histograms in metrics.distributions():
        kept_histograms, rest_histograms = _bounded(histograms)
        if rest_histograms:
            kept_histograms.append((_others(rest_histograms), _sum(rest_histograms)))
        yield _Written(len(rest_histograms), name, _histogram_lines(name, kept_histograms))


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
    rest = [series for index, series in enumerate(values) if index not in chosen]
    return [values[index] for index in kept], rest


def _others(rest: Sequence[tuple[Labels, _ValueT]]) -> Labels:
    return dict.fromkeys(rest[0][0], OTHERS)


def _sum(rest: Sequence[tuple[Labels, Histogram]]) -> Histogram:
    total = rest[0][1]
    for _, histogram in rest[1:]:
        total = total.plus(histogram)
    return total


def _number_lines(name: str, values: Iterable[tuple[Labels, float]], *, is_openmetrics: bool) -> str:
    """The lines of a counter or a gauge. OpenMetrics names the family of a counter without `_total`."""
    is_counter = name.endswith(_TOTAL)
    family = name.removesuffix(_TOTAL) if is_openmetrics else name
    lines = [_head(name, family, "counter" if is_counter else "gauge")]
    lines += (f"{name}{_in_braces(_text(labels))} {float(value)!r}\n" for labels, value in values)
    return "".join(lines)


def _histogram_lines(name: str, values: Iterable[tuple[Labels, Histogram]]) -> str:
    lines = [_head(name, name, "histogram")]
    for labels, histogram in values:
        text = _text(labels)
        start = f"{name}_bucket{{{text},le=" if text else f"{name}_bucket{{le="
        lines += (f"{start}{_le(bound)}}} {count}.0\n" for bound, count in histogram.buckets())
        braces = _in_braces(text)
        lines.append(f"{name}_count{braces} {histogram.count}.0\n{name}_sum{braces} {histogram.total}.0\n")
    return "".join(lines)


def _head(name: str, family: str, kind: str) -> str:
    """The help, if the metric is on the page of metrics, and the type."""
    text = help_texts().get(name)
    described = "" if text is None else f"# HELP {family} {text}\n"
    return f"{described}# TYPE {family} {kind}\n"


def _text(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _in_braces(text: str) -> str:
    return f"{{{text}}}" if text else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@lru_cache(maxsize=1_000)
def _le(bound: str) -> str:
    """A bound as OpenMetrics writes it: with a decimal point, except the last one, +Inf."""
    return f'"{bound}"' if bound == "+Inf" else f'"{bound}.0"'
