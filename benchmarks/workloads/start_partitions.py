"""Start with 1,000 partitions that hold data: after a clean shutdown, and after SIGKILL."""

import asyncio
import time

from confluent_kafka import Producer
from tests.clients.cluster import unique

from benchmarks.brokers.process import Broker, LocalBroker
from benchmarks.load.driver import PARTITIONS, topic_names
from benchmarks.load.first_answers import first_answers
from benchmarks.measurement import Metrics, Scale, Target, Workload
from benchmarks.workloads.group_load import create_topics

RECORDS_PER_PARTITION = 100
VALUE_BYTES = 100
_ENDS = ("stopped", "killed")


class StartPartitions(Workload):
    """Seconds from the start of the process to the answers of `benchmarks.load.first_answers`."""

    name = "start_partitions"
    targets = tuple(
        Target(f"{end}_{answer}_seconds", "<=", 2.0)
        for end in _ENDS
        for answer in ("metadata", "produce", "fetch")
    )
    brokers = ("barnabas", "kafka")
    warm_up = False

    def __init__(self, broker: Broker, scale: Scale) -> None:
        super().__init__(broker, scale)
        fresh = broker.fresh()
        assert fresh is not None
        self._broker: LocalBroker = fresh

    def prepare(self) -> None:
        self._broker.start()
        self._prefix = unique("start")
        create_topics(self._broker, self._prefix)

    def finish(self) -> None:
        self._broker.stop()

    def measure(self) -> Metrics:
        """Each partition is written before the end, so that an unclosed log has a tail to scan."""
        metrics: Metrics = {}
        for end in _ENDS:
            self._fill()
            if end == "killed":
                self._broker.kill()
            else:
                self._broker.stop()
            begin = time.perf_counter()
            self._broker.launch()
            answers = asyncio.run(first_answers(self._broker.address, topic_names(self._prefix), begin))
            metrics |= {f"{end}_{answer}_seconds": seconds for answer, seconds in answers.items()}
        return metrics

    def _fill(self) -> None:
        producer = Producer({"bootstrap.servers": self._broker.address, "linger.ms": 50, "log_level": 0})
        for _ in range(RECORDS_PER_PARTITION):
            for name in topic_names(self._prefix):
                for index in range(PARTITIONS):
                    producer.produce(name, bytes(VALUE_BYTES), partition=index)
            producer.poll(0)
        assert producer.flush(120) == 0, "records were not delivered in time"
