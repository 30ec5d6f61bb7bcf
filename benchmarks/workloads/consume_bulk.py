"""A plain librdkafka consumer that reads one partition to its end."""

from benchmarks.clients import fill, plain_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100


class ConsumeBulk(Workload):
    """Records per second after the first batch."""

    name = "consume_bulk"
    targets = (Target("records_per_second", ">=", 1.0, "kafka"),)

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topic = self.cluster.topic()
        fill(self.bootstrap, self._topic, self._count, VALUE_BYTES, linger_ms=5)

    def measure(self) -> Metrics:
        return {"records_per_second": plain_rate(self.bootstrap, self._topic, self._count)}
