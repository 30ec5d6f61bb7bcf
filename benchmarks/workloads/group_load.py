"""A normal day: 500 connections, 50 groups of each type, 1,000 partitions; see `benchmarks.load.driver`."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.clients.cluster import Cluster, unique

from benchmarks.brokers.process import Broker, LocalBroker
from benchmarks.load.driver import GROUP_TYPES, PARTITIONS, topic_names
from benchmarks.measurement import Metrics, Scale, Target, Workload, percentile

WINDOW_SECONDS = 30
WINDOW_SECONDS_MIN = 5
MEBIBYTE = 1 << 20
_DELIVERIES = tuple(f"{name}_delivery" for name in GROUP_TYPES)


class GroupLoad(Workload):
    """The broker's CPU time and memory while the load is steady, and the latencies of its clients."""

    name = "group_load"
    targets = (
        Target("cpu_seconds_per_second", "<=", 1.0, "kafka"),
        Target("resident_mib", "<=", 300),
        Target("produce_p50_ms", "<=", 1.0, "kafka"),
        Target("produce_p99_ms", "<=", 1.0, "kafka"),
        *(Target(f"{delivery}_p99_ms", "<=", 1.0, "kafka") for delivery in _DELIVERIES),
        Target("heartbeat_p99_ms", "<=", 1.0, "kafka"),
    )
    brokers = ("barnabas", "kafka")

    def __init__(self, broker: Broker, scale: Scale) -> None:
        super().__init__(broker, scale)
        fresh = broker.fresh()
        assert fresh is not None
        self._broker: LocalBroker = fresh

    @property
    def measured(self) -> LocalBroker:
        return self._broker

    def prepare(self) -> None:
        self._broker.start()
        self._prefix = unique("load")
        create_topics(self._broker, self._prefix)

    def finish(self) -> None:
        self._broker.stop()

    def measure(self) -> Metrics:
        window = max(WINDOW_SECONDS * self.scale.factor, WINDOW_SECONDS_MIN)
        module = [sys.executable, "-m", "benchmarks.load.driver", self._broker.address]
        options = [f"--topics={self._prefix}", f"--window={window}"]
        with subprocess.Popen([*module, *options], stdout=subprocess.PIPE, text=True) as driver:
            _next_line(driver)
            cpu_before = self._broker.cpu_seconds()
            driver_cpu_seconds = json.loads(_next_line(driver))["driver_cpu"]
            metrics = {
                "cpu_seconds_per_second": (self._broker.cpu_seconds() - cpu_before) / window,
                "driver_cpu_seconds_per_second": driver_cpu_seconds / window,
                "resident_mib": self._broker.resident_bytes() / MEBIBYTE,
            }
            return metrics | _latencies(json.loads(_next_line(driver)))


def create_topics(broker: LocalBroker, prefix: str) -> None:
    """The topics of the load: 1,000 partitions."""
    cluster = Cluster(broker.address)
    for name in topic_names(prefix):
        cluster.topic(PARTITIONS, name=name)


def _next_line(driver: "subprocess.Popen[str]") -> str:
    """The driver's next line. RuntimeError if it has failed; the cause is on its standard error."""
    assert driver.stdout is not None
    line = driver.stdout.readline()
    if not line:
        raise RuntimeError(f"the driver ended with exit code {driver.wait()}")
    return line


def _latencies(seconds: Mapping[str, Sequence[float]]) -> Metrics:
    metrics: Metrics = {}
    for name in ("produce", *_DELIVERIES, "heartbeat", "commit"):
        metrics[f"{name}_p50_ms"] = percentile(seconds[name], 0.5) * 1000
        metrics[f"{name}_p99_ms"] = percentile(seconds[name], 0.99) * 1000
    return metrics
