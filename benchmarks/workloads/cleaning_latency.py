"""Delivery through share groups during the compaction of a large log, compared with delivery without it."""

import time

from confluent_kafka import Producer
from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.polling import eventually

from benchmarks.brokers.barnabas import Barnabas
from benchmarks.brokers.process import Broker
from benchmarks.delivery import Delivery
from benchmarks.measurement import Metrics, Scale, Target, Workload, percentile

LOG_BYTES = 2 << 30
SEGMENT_BYTES = 64 << 20
VALUE_BYTES = 1_000
KEYS = 100_000
RECORDS = 8_000
_NEVER_EXCEEDED = "1"
"""A dirty ratio that keeps the log from being compacted until the setting is altered."""


class CleaningLatency(Workload):
    """p99 in ms of records in the compacted partition and in another, and its ratio to p99 without
    compaction.

    Also the duration of the compaction, and the share of the records' time that it overlaps.
    """

    name = "cleaning_latency"
    targets = (Target("same_ratio", "<=", 2.0), Target("other_ratio", "<=", 2.0))
    brokers = ("barnabas",)
    warm_up = False

    def __init__(self, broker: Broker, scale: Scale) -> None:
        super().__init__(broker, scale)
        fresh = broker.fresh()
        assert isinstance(fresh, Barnabas)
        fresh.settings = {"log.cleaner.backoff.ms": "500"}
        self._broker = fresh

    def prepare(self) -> None:
        self._broker.start()
        self.cluster = Cluster(self._broker.address)

    def finish(self) -> None:
        self._broker.stop()

    def measure(self) -> Metrics:
        dirty = self.cluster.topic(
            cleanup_policy="compact",
            segment_bytes=str(SEGMENT_BYTES),
            min_cleanable_dirty_ratio=_NEVER_EXCEEDED,
        )
        fill_with_keys(self._broker.address, dirty, round(LOG_BYTES * self.scale.factor / VALUE_BYTES))
        same, other = self._delivery(dirty), self._delivery(self.cluster.topic())
        count = self.scale.records(RECORDS)
        quiet_same, quiet_other = same.times_ms(count), other.times_ms(count)  # measured again afterwards
        begin = time.perf_counter()
        self._compact(dirty)
        busy_same, busy_other = same.times_ms(count), other.times_ms(count)
        busy_seconds = time.perf_counter() - begin
        eventually(lambda: self._is_compacted(dirty), awaited="the log is compacted", deadline_seconds=600)
        cleaning_seconds = time.perf_counter() - begin
        quiet_same += same.times_ms(count)
        quiet_other += other.times_ms(count)
        for delivery in (same, other):
            delivery.close()
        return {
            "same_p99_ms": percentile(busy_same, 0.99),
            "same_ratio": percentile(busy_same, 0.99) / percentile(quiet_same, 0.99),
            "other_p99_ms": percentile(busy_other, 0.99),
            "other_ratio": percentile(busy_other, 0.99) / percentile(quiet_other, 0.99),
            "cleaning_seconds": cleaning_seconds,
            "overlap_ratio": min(1.0, cleaning_seconds / busy_seconds),
        }

    def _delivery(self, topic: str) -> Delivery:
        return Delivery(self._broker.address, topic, self.cluster.group(start="latest"))

    def _compact(self, topic: str) -> None:
        """Allows the cleaner to compact the log."""
        entry = confluent_admin.ConfigEntry(
            "min.cleanable.dirty.ratio", "0", incremental_operation=confluent_admin.AlterConfigOpType.SET
        )
        resource = confluent_admin.ConfigResource(
            confluent_admin.ResourceType.TOPIC, topic, incremental_configs=[entry]
        )
        for altered in self.cluster.admin.incremental_alter_configs([resource]).values():
            altered.result(20)

    def _is_compacted(self, topic: str) -> bool:
        checkpoint = self._broker.directory / "data" / "cleaner-offset-checkpoint"
        return checkpoint.exists() and f"{topic} 0 " in checkpoint.read_text()


def fill_with_keys(bootstrap: str, topic: str, count: int) -> None:
    """Produces records of 1,000 bytes with `KEYS` keys in turn."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 20, "batch.size": 16_000}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 1_000_000})
    value = bytes(VALUE_BYTES)
    for number in range(count):
        key = str(number % KEYS)
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(300) == 0, "records were not delivered in time"
