"""Kafka's ShareConsumerPerformance with ten consumers of one group, on one partition and on twenty."""

from benchmarks.clients import fill, share_consumer_performance
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100
BATCH_BYTES = 16_384
THREADS = 10


class ShareThreads(Workload):
    """The rate of all consumers together."""

    name = "share_threads"
    targets = (
        Target("1_partition_per_second", ">=", 1.5, "kafka"),
        Target("20_partitions_per_second", ">=", 1.5, "kafka"),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topics = {
            "1_partition_per_second": self.cluster.topic(1),
            "20_partitions_per_second": self.cluster.topic(20),
        }
        for topic in self._topics.values():
            fill(self.bootstrap, topic, self._count, VALUE_BYTES, batch_size=BATCH_BYTES, linger_ms=100)

    def measure(self) -> Metrics:
        return {
            metric: share_consumer_performance(
                self.bootstrap, topic, self.cluster.group(), self._count, THREADS
            )
            for metric, topic in self._topics.items()
        }
