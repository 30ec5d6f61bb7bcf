"""What the broker counts, in memory and without a library: counters that are added to, gauges that are read
when asked for.

Names are words joined by underscores, units last, with labels where one thing is counted per API or
partition. Nothing here publishes them; `snapshot` is what a publisher would read.
"""

from collections.abc import Callable, Iterable, Mapping

Labelled = Iterable[tuple[Mapping[str, str], float]]
"""Values of one name, each with its labels."""


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, count: int = 1) -> None:
        self.value += count


class Metrics:
    """The counters and gauges of one broker.

    Ask for a counter once and keep it: the look-up by labels costs more than the addition. The number of
    distinct labels is bounded by whoever asks; nothing that a client chooses freely may become one.
    """

    def __init__(self) -> None:
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._families: dict[str, Callable[[], Labelled]] = {}

    def counter(self, name: str, **labels: str) -> Counter:
        """The counter of that name and those labels, made at first use."""
        return self._counters.setdefault(_key(name, labels), Counter())

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Publish what `read` returns under `name`; replaces an earlier gauge of the same name and labels."""
        self._gauges[_key(name, labels)] = read

    def family(self, name: str, read: Callable[[], Labelled]) -> None:
        """Publish what `read` returns under `name`, for labels that come and go, such as partitions."""
        self._families[name] = read

    def snapshot(self) -> dict[str, float]:
        """Every value now, by `name` or `name{label=value,...}`, sorted."""
        values: dict[str, float] = {key: counter.value for key, counter in self._counters.items()}
        values.update((key, read()) for key, read in self._gauges.items())
        for name, read in self._families.items():
            values.update((_key(name, labels), value) for labels, value in read())
        return dict(sorted(values.items()))


def _key(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    return name + "{" + ",".join(f"{label}={value}" for label, value in sorted(labels.items())) + "}"
