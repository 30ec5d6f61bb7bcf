"""One record at a time; each is sent after the previous one is confirmed."""

from benchmarks.clients import one_at_a_time_ms
from benchmarks.measurement import Metrics, Target, Workload, percentile

RECORDS = 5_000
VALUE_BYTES = 100


class ProduceLatency(Workload):
    """Milliseconds from produce to confirmation."""

    name = "produce_latency"
    targets = (Target("p50_ms", "<=", 1.0, "kafka"), Target("p99_ms", "<=", 1.0, "kafka"))

    def prepare(self) -> None:
        self._topic = self.cluster.topic()

    def measure(self) -> Metrics:
        times = one_at_a_time_ms(self.bootstrap, self._topic, self.scale.records(RECORDS), VALUE_BYTES)
        return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}
