"""A second group on a log with the first group's control records between nearly all data records.

Group 1 acquired and accepted every record when it was produced. The other log has the same producer batches
of one record each, and no earlier group. A broker that keeps share state in the data's own log must not slow
down group 2.
"""

from benchmarks.clients import share_rate
from benchmarks.measurement import Metrics, Target, Workload
from benchmarks.raw_client import RawProducer, RawShareConsumer

RECORDS = 40_000
RECORDS_MIN = 10_000
VALUE_BYTES = 100
PIPELINED = 200


class ShareSparse(Workload):
    """The rate of librdkafka's share consumer on both logs, and the ratio of the first to the other."""

    name = "share_sparse"
    targets = (Target("sparse_to_dense_ratio", ">=", 0.5),)
    brokers = ("barnabas", "peer")

    def prepare(self) -> None:
        self._count = max(RECORDS_MIN, self.scale.records(RECORDS))
        self._dense = self.cluster.topic()
        self._sparse = self.cluster.topic()
        self._fill_dense()
        self._fill_sparse()

    def measure(self) -> Metrics:
        sparse, dense = (
            share_rate(self.bootstrap, topic, self.cluster.group(), self._count, "implicit")
            for topic in (self._sparse, self._dense)
        )
        return {
            "sparse_per_second": sparse,
            "dense_per_second": dense,
            "sparse_to_dense_ratio": sparse / dense,
        }

    def _fill_dense(self) -> None:
        producer = RawProducer(self.bootstrap, self._dense, bytes(VALUE_BYTES))
        for _ in range(self._count // PIPELINED):
            producer.send(PIPELINED)
            producer.receive(PIPELINED)
        producer.close()

    def _fill_sparse(self) -> None:
        """Produce, acquire and accept singly: each fetch accepts the last record and acquires the next."""
        topic_id = self.cluster.topic_id(self._sparse)
        group_1 = RawShareConsumer(self.bootstrap, self.cluster.group(), self._sparse, topic_id)
        group_1.join()
        producer = RawProducer(self.bootstrap, self._sparse, bytes(VALUE_BYTES))
        taken = group_1.acquire(1, wait_ms=0)
        for _ in range(self._count):
            producer.send()
            producer.receive()
            group_1.send_fetch(1, accepted=taken)
            taken = group_1.receive_fetch()
        group_1.accept_singly(taken)
        group_1.close()
        producer.close()
