"""Restart after SIGKILL with a large log that contains many acknowledgements."""

import time

from tests.clients.cluster import Cluster
from tests.clients.polling import eventually

from benchmarks.brokers.process import START_SECONDS, Broker
from benchmarks.clients import fill
from benchmarks.measurement import Metrics, Scale, Target, Workload
from benchmarks.raw_client import RawProducer, RawShareConsumer

LOG_BYTES = 1 << 30
VALUE_BYTES = 10_000
ACKNOWLEDGEMENTS = 100_000
SMALL_VALUE_BYTES = 100
AT_ONCE = 500


class Recovery(Workload):
    """Seconds from the start of the process to the first answer, and to the first record confirmed."""

    name = "recovery"
    targets = (Target("first_answer_seconds", "<=", 1.0), Target("first_record_seconds", "<=", 1.0))
    brokers = ("barnabas", "kafka")
    warm_up = False

    def __init__(self, broker: Broker, scale: Scale) -> None:
        super().__init__(broker, scale)
        fresh = broker.fresh()
        assert fresh is not None
        self._broker = fresh

    def prepare(self) -> None:
        """Fill one partition with bulk data, and then with single records that are accepted individually."""
        self._broker.start()
        self._topic = Cluster(self._broker.address).topic()
        bulk = round(LOG_BYTES * self.scale.factor / VALUE_BYTES)
        fill(self._broker.address, self._topic, bulk, VALUE_BYTES, linger_ms=5)
        self._acknowledge_singly(round(ACKNOWLEDGEMENTS * self.scale.factor))

    def finish(self) -> None:
        self._broker.stop()

    def measure(self) -> Metrics:
        self._broker.kill()
        begin = time.perf_counter()
        self._broker.launch()
        self._broker.await_answer()
        first_answer = time.perf_counter() - begin
        eventually(self._produced, awaited="a record is confirmed", deadline_seconds=START_SECONDS)
        first_record = time.perf_counter() - begin
        return {"first_answer_seconds": first_answer, "first_record_seconds": first_record}

    def _produced(self) -> bool:
        """Whether the partition accepts a record."""
        producer = RawProducer(self._broker.address, self._topic, bytes(SMALL_VALUE_BYTES))
        producer.send()
        try:
            producer.receive()
        except RuntimeError:
            return False
        finally:
            producer.close()
        return True

    def _acknowledge_singly(self, count: int) -> None:
        cluster = Cluster(self._broker.address)
        group = cluster.group(start="latest")
        consumer = RawShareConsumer(self._broker.address, group, self._topic, cluster.topic_id(self._topic))
        consumer.join()
        consumer.acquire(1, wait_ms=0)
        producer = RawProducer(self._broker.address, self._topic, bytes(SMALL_VALUE_BYTES))
        accepted = 0
        while accepted < count:
            producer.send(AT_ONCE)
            producer.receive(AT_ONCE)
            taken = consumer.acquire(AT_ONCE)
            consumer.accept_singly(taken)
            accepted += len(taken)
        producer.close()
        consumer.close()
