"""The start time of a broker with an empty data directory, and its memory."""

import time

from tests.clients.cluster import Cluster

from benchmarks.brokers.process import LocalBroker
from benchmarks.clients import fill, share_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100
MEBIBYTE = 1 << 20


class Start(Workload):
    """Seconds from the start of the process to the first answered ApiVersions, and resident memory."""

    name = "start"
    targets = (
        Target("start_seconds", "<=", 0.4),
        Target("idle_mib", "<=", 70),
        Target("after_records_mib", "<=", 200),
    )
    brokers = ("barnabas", "kafka", "kfake")

    def measure(self) -> Metrics:
        broker = self.broker.fresh()
        assert broker is not None
        broker.start()
        broker.stop()
        begin = time.perf_counter()
        broker.launch()
        broker.await_answer()
        seconds = time.perf_counter() - begin
        try:
            idle = broker.resident_bytes()
            return {
                "start_seconds": seconds,
                "idle_mib": idle / MEBIBYTE,
                "after_records_mib": self._after_records(broker) / MEBIBYTE,
            }
        finally:
            broker.stop()

    def _after_records(self, broker: LocalBroker) -> int:
        """Memory after a share group has consumed the produced records."""
        cluster = Cluster(broker.address)
        topic, count = cluster.topic(), self.scale.records(RECORDS)
        fill(broker.address, topic, count, VALUE_BYTES, linger_ms=5)
        share_rate(broker.address, topic, cluster.group(), count, "implicit")
        return broker.resident_bytes()
