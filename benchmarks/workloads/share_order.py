"""Share groups with `share.order=key` beside the same groups without an order, on the same topics.

A pair of runs on one topic takes turns with the next pair, so that both halves of a ratio see the same
machine. Keys are uniform, except those of the skewed topic: a hundredth of its records have one hot key.
"""

import random

from confluent_kafka import Producer

from benchmarks.clients import share_consumer_performance, share_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 300_000
VALUE_BYTES = 100
BATCH_RECORDS = 100
POLL_RECORDS = 100
"""Of the confluent client. Java's tool keeps its default of 500."""
THREADS = 4
HOT_SHARE = 0.01
KEY_COUNTS = {"1000_keys": 1_000, "100000_keys": 100_000}


class ShareOrder(Workload):
    """The rate of an ordered group as a share of that of an unordered one."""

    name = "share_order"
    brokers = ("barnabas",)
    targets = (
        Target("1000_keys_confluent_ratio", ">=", 0.5),
        Target("1000_keys_java_ratio", ">=", 0.5),
        Target("100000_keys_confluent_ratio", ">=", 0.7),
        Target("100000_keys_java_ratio", ">=", 0.7),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topics = {name: self._filled(count, hot=0.0) for name, count in KEY_COUNTS.items()}
        self._topics["hot_key"] = self._filled(KEY_COUNTS["100000_keys"], hot=HOT_SHARE)

    def _filled(self, key_count: int, *, hot: float) -> str:
        topic = self.cluster.topic()
        settings = {
            "batch.num.messages": BATCH_RECORDS,
            "linger.ms": 1000,
            "queue.buffering.max.messages": 1_000_000,
        }
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, **settings})
        chance = random.Random(key_count)
        for _ in range(self._count):
            number = 0 if chance.random() < hot else chance.randrange(key_count)
            producer.produce(topic, bytes(VALUE_BYTES), key=b"key-%d" % number)
        assert not producer.flush(120), "records were not confirmed"
        return topic

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for name, topic in self._topics.items():
            for client, measured in (("confluent", self._confluent), ("java", self._java)):
                unordered, ordered = measured(topic, "none"), measured(topic, "key")
                metrics[f"{name}_{client}_unordered_per_second"] = unordered
                metrics[f"{name}_{client}_ordered_per_second"] = ordered
                metrics[f"{name}_{client}_ratio"] = ordered / unordered
        return metrics

    def _confluent(self, topic: str, order: str) -> float:
        group = self.cluster.group(order=order)
        return share_rate(
            self.bootstrap, topic, group, self._count, "implicit", max_poll_records=POLL_RECORDS
        )

    def _java(self, topic: str, order: str) -> float:
        group = self.cluster.group(order=order)
        return share_consumer_performance(self.bootstrap, topic, group, self._count, THREADS)
