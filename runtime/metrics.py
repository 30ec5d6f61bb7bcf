"""The broker's metrics, in memory and without a library: counters, histograms, and gauges that are read on
demand.

Names follow Prometheus (docs/metrics.md): words joined by underscores, the unit last, `_total` for counters,
labels for an API, a group or a partition. Metrics of Apache Kafka begin with `kafka_`, Barnabas's own with
`barnabas_`. Nothing here publishes them: `broker/http` reads `numbers` and `distributions`, tests `snapshot`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

MS_BOUNDS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)
"""The bounds of histograms of milliseconds."""
BYTES_BOUNDS: Final = (128, 1024, 8 * 1024, 64 * 1024, 512 * 1024, 4 * 1024 * 1024, 32 * 1024 * 1024)
PERCENT_BOUNDS: Final = (0, 10, 25, 50, 75, 90, 99, 100)
RECORD_COUNT_BOUNDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)

_T = TypeVar("_T")

Labels = Mapping[str, str]

_LabelKey = tuple[tuple[str, str], ...]
"""Labels in the order of their names."""

Labelled = Iterable[tuple[Labels, _T]]
"""Values of one name, each with its labels."""


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, count: int = 1) -> None:
        self.value += count


class Histogram:
    """The number of values at or below each bound, and above all of them."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        """`bounds` ascend; they are shared, not copied."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0
        """The sum of all values."""

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    def observe(self, value: int) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound, `+Inf` last, with the number of values at or below it."""
        count = 0
        for bound, more in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            count += more
            yield bound, count

    def plus(self, other: "Histogram", *, times_zero: int = 0) -> "Histogram":
        """A new histogram with the values of both, which have the same bounds, and `times_zero` zeros."""
        both = Histogram(self._bounds)
        both._counts = [mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)]
        both._counts[bisect_left(self._bounds, 0)] += times_zero
        both.total = self.total + other.total
        return both


class Metrics:
    """The counters, gauges and histograms of one broker.

    Ask for a counter or a histogram once and keep it: the look-up by labels costs more than the addition. The
    caller must bound the number of distinct labels. A text that a client chooses must not become a label.
    """

    def __init__(self) -> None:
        self._counters: dict[str, dict[_LabelKey, Counter]] = defaultdict(dict)
        self._gauges: dict[str, dict[_LabelKey, Callable[[], float]]] = defaultdict(dict)
        self._families: dict[str, Callable[[], Labelled[float]]] = {}
        self._histograms: dict[str, Callable[[], Labelled[Histogram]]] = {}

    def counter(self, name: str, **labels: str) -> Counter:
        """The counter with this name and these labels, created at first use."""
        return self._counters[name].setdefault(_key(labels), Counter())

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Publish the result of `read` as `name`; replaces an earlier gauge of the same name and labels."""
        self._gauges[name][_key(labels)] = read

    def family(self, name: str, read: Callable[[], Labelled[float]]) -> None:
        """Publish the values of `read` as `name`, for labels that come and go, such as partitions."""
        self._families[name] = read

    def histograms(self, name: str, read: Callable[[], Labelled[Histogram]]) -> None:
        """Publish the histograms of `read` as `name`."""
        self._histograms[name] = read

    def numbers(self) -> Iterator[tuple[str, Labelled[float]]]:
        """The present values of each counter and gauge, by name. Between two steps metrics may be added."""
        for name, counters in list(self._counters.items()):
            yield name, [(dict(key), counter.value) for key, counter in counters.items()]
        for name, gauges in list(self._gauges.items()):
            yield name, [(dict(key), read()) for key, read in gauges.items()]
        for name, read_family in list(self._families.items()):
            yield name, read_family()

    def distributions(self) -> Iterator[tuple[str, Labelled[Histogram]]]:
        """The histograms by name. Between two steps metrics may be added."""
        for name, read in list(self._histograms.items()):
            yield name, read()

    def snapshot(self) -> dict[str, float]:
        """The present values by `name` or `name{label=value,...}`, sorted.

        A histogram gives its `_bucket`s by `le`, its `_count` and its `_sum`, as in Prometheus.
        """
        values = {
            _text(name, labels): value for name, labelled in self.numbers() for labels, value in labelled
        }
        for name, labelled_histograms in self.distributions():
            for labels, histogram in labelled_histograms:
                values.update(_histogram_values(name, labels, histogram))
        return dict(sorted(values.items()))


def _histogram_values(name: str, labels: Labels, histogram: Histogram) -> Iterator[tuple[str, float]]:
    for bound, count in histogram.buckets():
        yield _text(f"{name}_bucket", {**labels, "le": bound}), count
    yield _text(f"{name}_count", labels), histogram.count
    yield _text(f"{name}_sum", labels), histogram.total


def _key(labels: Labels) -> _LabelKey:
    return tuple(sorted(labels.items()))


def _text(name: str, labels: Labels) -> str:
    if not labels:
        return name
    return name + "{" + ",".join(f"{label}={value}" for label, value in sorted(labels.items())) + "}"
