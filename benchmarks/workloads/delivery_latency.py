"""From produce to delivery through a share group, 500 records a second, and what it costs the broker."""

import threading
import time

from confluent_kafka import Producer, ShareConsumer
from tests.clients.polling import eventually

from benchmarks.clients import share_consumer
from benchmarks.measurement import Metrics, Target, Workload, percentile

RECORDS = 4_000
RECORDS_PER_SECOND = 500


class DeliveryLatency(Workload):
    """Milliseconds per record, and CPU seconds of the broker per run."""

    name = "delivery_latency"
    targets = (
        Target("p50_ms", "<=", 1.0, "kafka"),
        Target("p99_ms", "<=", 1 / 3, "kafka"),
        Target("broker_cpu_seconds", "<=", 1 / 3, "kafka"),
    )

    def measure(self) -> Metrics:
        topic = self.cluster.topic()
        consumer = share_consumer(self.bootstrap, topic, self.cluster.group(), "implicit")
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, "log_level": 0})
        self._deliver_one(producer, consumer, topic)
        cpu_before = self.broker.cpu_seconds()
        times = self._run(producer, consumer, topic)
        cpu_after = self.broker.cpu_seconds()
        consumer.close()
        metrics = {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}
        if cpu_before is not None and cpu_after is not None:
            metrics["broker_cpu_seconds"] = cpu_after - cpu_before
        return metrics

    def _deliver_one(self, producer: Producer, consumer: ShareConsumer, topic: str) -> None:
        """Wait until the group has joined."""
        producer.produce(topic, b"0")
        producer.flush(30)
        eventually(lambda: len(consumer.poll(0.2)), what="the group delivers", deadline_seconds=60)

    def _run(self, producer: Producer, consumer: ShareConsumer, topic: str) -> list[float]:
        count = self.scale.records(RECORDS)
        sending = threading.Thread(target=_send, args=(producer, topic, count))
        sending.start()
        times: list[float] = []
        while len(times) < count:
            messages = consumer.poll(1.0)
            now = time.perf_counter()
            for message in messages:
                times.append((now - float(message.value() or b"0")) * 1000)  # noqa: PERF401
        sending.join()
        return times


def _send(producer: Producer, topic: str, count: int) -> None:
    """Send time stamps at an even pace."""
    begin = time.perf_counter()
    for number in range(count):
        due = begin + number / RECORDS_PER_SECOND
        while (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        producer.produce(topic, repr(time.perf_counter()).encode())
        producer.poll(0)
    producer.flush(30)
