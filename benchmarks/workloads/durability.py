"""The cost of each `log.flush` policy: one share consumer's acknowledgements, single appends, log size.

The consumer is the raw one. It sends 1-record acknowledgements without waiting for each answer, so that group
commit takes effect, and also waits for each (`waited_for`); it sends 500-record acknowledgements one after
another. Sizes are read from the log files.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.clients.cluster import Cluster

from barnabas.protocol.record_batch import HEADER_BYTES, BatchHeader, iterate_headers
from benchmarks.brokers.barnabas import Barnabas
from benchmarks.clients import fill
from benchmarks.measurement import Metrics, Target, Workload, percentile
from benchmarks.raw_client import RawProducer, RawShareConsumer

POLICIES = ("never", "interval", "always")
SINGLY = 20_000
TOGETHER = 500
ROUNDS = 400
APPENDS = 2_000
VALUE_BYTES = 100
MILLION = 1_000_000


class Durability(Workload):
    """Rates, latencies and sizes under each policy, each with its own broker."""

    name = "durability"
    targets = (
        Target("range_append_bytes", "<=", 140),
        Target("record_bytes", "<=", 0.5),
    )
    brokers = ("barnabas",)
    warm_up = False

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for policy in POLICIES:
            assert isinstance(self.broker, Barnabas)
            broker = self.broker.with_settings({"log.flush": policy})
            broker.start()
            try:
                metrics |= self._measure(broker, policy)
            finally:
                broker.stop()
        return metrics

    def _measure(self, broker: Barnabas, policy: str) -> Metrics:
        appends_ms = _append_ms(broker.address, round(APPENDS * self.scale.factor) + 100)
        waited_ms = _waited_for_ms(broker.address, round(APPENDS * self.scale.factor) + 100)
        single_topic, singles = self._acknowledge(broker.address, self.scale.records(SINGLY), at_once=False)
        bulk_topic, bulks = self._acknowledge(
            broker.address, max(round(ROUNDS * self.scale.factor), 20) * TOGETHER, at_once=True
        )
        metrics: Metrics = {
            f"{policy}_single_per_second": singles,
            f"{policy}_waited_for_per_second": 1000 * len(waited_ms) / sum(waited_ms),
            f"{policy}_of_500_per_second": bulks,
            f"{policy}_append_p50_ms": percentile(appends_ms, 0.5),
            f"{policy}_append_p99_ms": percentile(appends_ms, 0.99),
        }
        if policy == "interval":
            metrics |= _sizes(broker, single_topic, bulk_topic)
        return metrics

    def _acknowledge(self, address: str, count: int, *, at_once: bool) -> tuple[str, float]:
        """The topic, and acknowledged records per second; the time for acquiring them is not counted."""
        cluster = Cluster(address)
        topic, group = cluster.topic(), cluster.group()
        fill(address, topic, count, VALUE_BYTES, batch_num_messages=TOGETHER, linger_ms=1000)
        consumer = RawShareConsumer(address, group, topic, cluster.topic_id(topic))
        consumer.join()
        accept = consumer.accept_together if at_once else consumer.accept_singly
        accepted, seconds = 0, 0.0
        while accepted < count:
            taken = consumer.acquire(TOGETHER)
            begin = time.perf_counter()
            accept(taken)
            seconds += time.perf_counter() - begin
            accepted += len(taken)
        consumer.close()
        return topic, count / seconds


def _waited_for_ms(address: str, count: int) -> list[float]:
    """Milliseconds of 1-record acknowledgements, each awaited before the next is sent."""
    cluster = Cluster(address)
    topic, group = cluster.topic(), cluster.group()
    fill(address, topic, count, VALUE_BYTES, batch_num_messages=TOGETHER, linger_ms=1000)
    consumer = RawShareConsumer(address, group, topic, cluster.topic_id(topic))
    consumer.join()
    times: list[float] = []
    while len(times) < count:
        for offset in consumer.acquire(TOGETHER):
            begin = time.perf_counter()
            consumer.accept_together([offset])
            times.append((time.perf_counter() - begin) * 1000)
    consumer.close()
    return times


def _append_ms(address: str, count: int) -> list[float]:
    """Milliseconds of single appends, one after another."""
    producer = RawProducer(address, Cluster(address).topic(), bytes(VALUE_BYTES))
    times: list[float] = []
    for _ in range(count):
        begin = time.perf_counter()
        producer.send()
        producer.receive()
        times.append((time.perf_counter() - begin) * 1000)
    producer.close()
    return times[100:]


def _sizes(broker: Barnabas, single_topic: str, bulk_topic: str) -> Metrics:
    data = broker.directory / "data"
    bulk = sorted(header.size_bytes for header in _control_batches(data, bulk_topic))
    single = [header.size_bytes for header in _control_batches(data, single_topic)]
    return {
        "range_append_bytes": percentile(bulk, 0.5) - HEADER_BYTES,
        "record_bytes": sum(bulk) / _data_count(data, bulk_topic),
        "single_mib_per_million": sum(single) / _data_count(data, single_topic) * MILLION / (1 << 20),
        "of_500_mib_per_million": sum(bulk) / _data_count(data, bulk_topic) * MILLION / (1 << 20),
    }


def _control_batches(data: Path, topic: str) -> Iterator[BatchHeader]:
    return (header for header in _headers(data, topic) if header.is_control)


def _data_count(data: Path, topic: str) -> int:
    return sum(header.record_count for header in _headers(data, topic) if not header.is_control)


def _headers(data: Path, topic: str) -> Iterator[BatchHeader]:
    for segment in sorted((data / f"{topic}-0").glob("*.log")):
        for _, header in iterate_headers(segment.read_bytes()):
            yield header
