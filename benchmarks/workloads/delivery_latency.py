"""From produce to delivery through a share group at 500 records per second, and the broker's CPU time."""

from benchmarks.delivery import Delivery
from benchmarks.measurement import Metrics, Target, Workload, percentile

RECORDS = 4_000


class DeliveryLatency(Workload):
    """Milliseconds per record, and CPU seconds of the broker per run."""

    name = "delivery_latency"
    targets = (
        Target("p50_ms", "<=", 1.0, "kafka"),
        Target("p99_ms", "<=", 1 / 3, "kafka"),
        Target("broker_cpu_seconds", "<=", 1 / 3, "kafka"),
    )

    def measure(self) -> Metrics:
        delivery = Delivery(self.bootstrap, self.cluster.topic(), self.cluster.group())
        cpu_before = self.broker.cpu_seconds()
        times = delivery.times_ms(self.scale.records(RECORDS))
        cpu_after = self.broker.cpu_seconds()
        delivery.close()
        metrics = {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}
        if cpu_before is not None and cpu_after is not None:
            metrics["broker_cpu_seconds"] = cpu_after - cpu_before
        return metrics
