"""The wait of a new group for its first record on a topic with records, with the broker's defaults."""

import time

from tests.clients.cluster import numbered, unique
from tests.clients.polling import eventually
from tests.clients.share_probe import ShareProbe

from benchmarks.clients import share_consumer
from benchmarks.measurement import Metrics, Target, Workload


class FirstRecord(Workload):
    """Seconds from subscribe to the first record, for librdkafka and for Java."""

    name = "first_record"
    targets = (
        Target("confluent_seconds", "<=", 0.1),
        Target("java_seconds", "<=", 1.0),
    )

    def prepare(self) -> None:
        self._topic = self.cluster.topic()
        self.cluster.produce(self._topic, numbered(100))

    def measure(self) -> Metrics:
        return {"confluent_seconds": self._with_confluent(), "java_seconds": self._with_java()}

    def _with_confluent(self) -> float:
        group = self.cluster.group()
        begin = time.perf_counter()
        consumer = share_consumer(self.bootstrap, self._topic, group, "implicit")
        eventually(lambda: len(consumer.poll(1.0)), awaited="a record comes", deadline_seconds=60)
        seconds = time.perf_counter() - begin
        consumer.close()
        return seconds

    def _with_java(self) -> float:
        """In a JVM that has done it once before."""
        probe = ShareProbe(self.bootstrap)
        try:
            self._java_once(probe)
            return self._java_once(probe)
        finally:
            probe.kill()

    def _java_once(self, probe: ShareProbe) -> float:
        group = self.cluster.group()
        begin = time.perf_counter()
        consumer = probe.consumer(unique("consumer"), group, [self._topic])
        eventually(lambda: consumer.poll(1000), awaited="a record comes", deadline_seconds=60)
        seconds = time.perf_counter() - begin
        consumer.close()
        return seconds
