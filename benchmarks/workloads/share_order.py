"""Share groups with `share.order=key` beside the same groups without an order, on the same topics.

The two halves of a ratio follow each other directly, so that both see the same machine. Keys are uniform,
except on the skewed topic: a hundredth of its records have one hot key.
"""

import random
from typing import NamedTuple

from confluent_kafka import Producer

from benchmarks.clients import share_consumer_performance, share_rate
from benchmarks.measurement import Metrics, Target, Workload

RECORDS = 200_000
VALUE_BYTES = 100
THREADS = 4


class Load(NamedTuple):
    """Records with this number of keys, in batches that are as large as a poll."""

    key_count: int
    batch_records: int
    hot_share: float = 0.0


LOADS = {
    "1000_keys_20": Load(1_000, 20),
    "1000_keys_100": Load(1_000, 100),
    "100000_keys_100": Load(100_000, 100),
    "100000_keys_500": Load(100_000, 500),
    "hot_key_100": Load(100_000, 100, hot_share=0.01),
}
JAVA_LOAD = "100000_keys_500"
"""Java's tool polls 500 records."""


class ShareOrder(Workload):
    """The rate of an ordered group as a share of that of an unordered one."""

    name = "share_order"
    brokers = ("barnabas",)
    targets = (
        Target("1000_keys_20_ratio", ">=", 0.5),
        Target("100000_keys_100_ratio", ">=", 0.7),
        Target("java_100000_keys_500_ratio", ">=", 0.7),
    )

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topics = {name: self._filled(load) for name, load in LOADS.items()}

    def _filled(self, load: Load) -> str:
        topic = self.cluster.topic()
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "log_level": 0,
                "batch.num.messages": load.batch_records,
                "linger.ms": 1000,
                "queue.buffering.max.messages": RECORDS,
            }
        )
        chance = random.Random(load.key_count)
        for _ in range(self._count):
            is_hot = chance.random() < load.hot_share
            number = 0 if is_hot else chance.randrange(load.key_count)
            producer.produce(topic, bytes(VALUE_BYTES), key=b"key-%d" % number)
        assert not producer.flush(120), "records were not confirmed"
        return topic

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for name, topic in self._topics.items():
            unordered, ordered = (self._confluent(name, topic, order) for order in ("none", "key"))
            metrics |= _rates(name, unordered, ordered)
        unordered, ordered = (self._java(order) for order in ("none", "key"))
        return metrics | _rates(f"java_{JAVA_LOAD}", unordered, ordered)

    def _confluent(self, name: str, topic: str, order: str) -> float:
        group = self.cluster.group(order=order)
        poll = LOADS[name].batch_records
        return share_rate(self.bootstrap, topic, group, self._count, "implicit", max_poll_records=poll)

    def _java(self, order: str) -> float:
        group = self.cluster.group(order=order)
        topic = self._topics[JAVA_LOAD]
        return share_consumer_performance(self.bootstrap, topic, group, self._count, THREADS)


def _rates(name: str, unordered: float, ordered: float) -> Metrics:
    return {
        f"{name}_unordered_per_second": unordered,
        f"{name}_ordered_per_second": ordered,
        f"{name}_ratio": ordered / unordered,
    }
