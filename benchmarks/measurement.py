"""Workloads, their results, and their targets."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tests.clients.cluster import Cluster

from benchmarks.brokers.process import Broker

Metrics = dict[str, float]
"""Numbers of one run by name; the last word of the name is the unit."""

SUBJECT = "barnabas"


@dataclass(frozen=True)
class Scale:
    """The size of the runs: `full` for figures to quote, `quick` to see that everything works."""

    factor: float
    repeats: int

    def records(self, count: int) -> int:
        """A record count at this scale, at least 1,000 and in whole thousands."""
        return max(1000, round(count * self.factor / 1000) * 1000)


FULL = Scale(factor=1.0, repeats=3)
QUICK = Scale(factor=0.05, repeats=1)


@dataclass(frozen=True)
class Target:
    """A limit for a metric of Barnabas, or for its ratio to a peer's if `against` names one."""

    metric: str
    comparison: Literal[">=", "<="]
    bound: float
    against: str | None = None

    def met(self, value: float) -> bool:
        """Whether a value or ratio is on the right side of the limit."""
        return value >= self.bound if self.comparison == ">=" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.comparison} {self.bound:g}" + (f"x {self.against}" if self.against else "")


class Workload:
    """One kind of work on one running broker: `prepare` once, then `measure` any number of times."""

    name: ClassVar[str]
    targets: ClassVar[Sequence[Target]] = ()
    brokers: ClassVar[Sequence[str] | None] = None
    """Names of the brokers that it applies to; None for all."""
    warm_up: ClassVar[bool] = True
    """Whether the first run is discarded."""

    def __init__(self, broker: Broker, scale: Scale) -> None:
        self.broker = broker
        self.scale = scale
        self.bootstrap = broker.address
        self.cluster = Cluster(broker.address)

    @property
    def measured(self) -> Broker:
        """The broker whose process a profile observes."""
        return self.broker

    def prepare(self) -> None:
        """Create topics and fill them."""

    def measure(self) -> Metrics:
        """One run."""
        raise NotImplementedError

    def finish(self) -> None:
        """End everything that `prepare` has started."""


@dataclass
class Results:
    """Runs of one workload, by broker."""

    workload: str
    targets: Sequence[Target]
    runs: dict[str, list[Metrics]] = field(default_factory=dict[str, list[Metrics]])
    failures: dict[str, str] = field(default_factory=dict[str, str])
    """Brokers that failed during the work, with the error."""

    def median(self, broker: str, metric: str) -> float | None:
        """The median of a broker's runs; None if it has none."""
        values = [run[metric] for run in self.runs.get(broker, []) if metric in run]
        return statistics.median(values) if values else None

    def metrics(self) -> list[str]:
        """Names of all metrics, in order of appearance."""
        return list({metric: None for runs in self.runs.values() for run in runs for metric in run})

    def value_for(self, target: Target) -> float | None:
        """The value for the target: Barnabas's median, or its ratio to the peer's; None if unknown."""
        ours = self.median(SUBJECT, target.metric)
        if target.against is None or ours is None:
            return ours
        theirs = self.median(target.against, target.metric)
        return ours / theirs if theirs else None


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * len(ordered)))]


def all_met(results: Mapping[str, Results]) -> bool:
    """Whether every target with a known value was met."""
    if any(SUBJECT in each.failures for each in results.values()):
        return False
    judged = ((target, each.value_for(target)) for each in results.values() for target in each.targets)
    return all(target.met(value) for target, value in judged if value is not None)
