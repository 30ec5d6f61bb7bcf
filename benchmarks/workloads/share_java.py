"""Kafka's own ShareConsumerPerformance on one partition of records in 16 KB producer batches."""

from benchmarks.clients import fill, share_consumer_performance
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100
BATCH_BYTES = 16_384


class ShareJava(Workload):
    """The rate of one Java share consumer in implicit mode, from its first delivery on."""

    name = "share_java"
    targets = (
        Target("records_per_second", ">=", 2.5, "kafka"),
        Target("records_per_second", ">=", 0.95, "kfake"),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topic = self.cluster.topic()
        fill(self.bootstrap, self._topic, self._count, VALUE_BYTES, batch_size=BATCH_BYTES, linger_ms=100)

    def measure(self) -> Metrics:
        group = self.cluster.group()
        rate = share_consumer_performance(self.bootstrap, self._topic, group, self._count)
        return {"records_per_second": rate}
