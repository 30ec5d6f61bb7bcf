"""Producing as fast as the client can: librdkafka and Java, records of 100 bytes and of 1 KB."""

from benchmarks.clients import fill, producer_performance
from benchmarks.measurement import Metrics, Target, Workload
from benchmarks.page_cache import make_room

RECORDS = {100: 1_000_000, 1000: 300_000}
RECORD_OVERHEAD_BYTES_MAX = 20


class ProduceBulk(Workload):
    """Records per second until the last one is confirmed, acks=all."""

    name = "produce_bulk"
    targets = tuple(
        Target(f"{client}_{value_bytes}_bytes_per_second", ">=", 1.0, "kafka")
        for client in ("confluent", "java")
        for value_bytes in RECORDS
    )

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for value_bytes, records in RECORDS.items():
            count = self.scale.records(records)
            topic_bytes = count * (value_bytes + RECORD_OVERHEAD_BYTES_MAX)
            topic = self.cluster.topic()
            make_room(topic_bytes)
            metrics[f"confluent_{value_bytes}_bytes_per_second"] = fill(
                self.bootstrap, topic, count, value_bytes, linger_ms=5
            )
            make_room(topic_bytes)
            metrics[f"java_{value_bytes}_bytes_per_second"] = producer_performance(
                self.bootstrap, topic, count, value_bytes
            )
        return metrics
