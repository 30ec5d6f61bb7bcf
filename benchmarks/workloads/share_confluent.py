"""librdkafka's share consumer on producer batches of 10,000 records, accepting implicitly and explicitly."""

from benchmarks.clients import fill, share_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100
BATCH_RECORDS = 10_000
BATCH_BYTES_MAX = 4_000_000


class ShareConfluent(Workload):
    """The rate of one share consumer after its first batch."""

    name = "share_confluent"
    targets = (
        Target("implicit_per_second", ">=", 1.0, "kafka"),
        Target("explicit_per_second", ">=", 1.0, "kafka"),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topic = self.cluster.topic(max_message_bytes=str(BATCH_BYTES_MAX))
        fill(
            self.bootstrap,
            self._topic,
            self._count,
            VALUE_BYTES,
            batch_num_messages=BATCH_RECORDS,
            batch_size=BATCH_BYTES_MAX,
            message_max_bytes=BATCH_BYTES_MAX,
            linger_ms=1000,
        )

    def measure(self) -> Metrics:
        return {
            f"{mode}_per_second": share_rate(
                self.bootstrap, self._topic, self.cluster.group(), self._count, mode
            )
            for mode in ("implicit", "explicit")
        }
