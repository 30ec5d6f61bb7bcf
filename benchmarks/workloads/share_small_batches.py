"""librdkafka's share consumer on producer batches of 100 records, at its default fetch size of 50 MB.

Every fetch may return far more than can be acquired, so this shows the broker's cost for records that it does
not deliver.
"""

from benchmarks.clients import fill, share_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 1_000_000
VALUE_BYTES = 100
BATCH_RECORDS = 100


class ShareSmallBatches(Workload):
    """The rate of one share consumer after its first batch."""

    name = "share_small_batches"
    targets = (
        Target("implicit_per_second", ">=", 3.0, "kafka"),
        Target("implicit_per_second", ">=", 0.9, "kfake"),
        Target("explicit_per_second", ">=", 3.0, "kafka"),
        Target("explicit_per_second", ">=", 0.9, "kfake"),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topic = self.cluster.topic()
        fill(
            self.bootstrap,
            self._topic,
            self._count,
            VALUE_BYTES,
            batch_num_messages=BATCH_RECORDS,
            linger_ms=1000,
        )

    def measure(self) -> Metrics:
        return {
            f"{mode}_per_second": share_rate(
                self.bootstrap, self._topic, self.cluster.group(), self._count, mode
            )
            for mode in ("implicit", "explicit")
        }
