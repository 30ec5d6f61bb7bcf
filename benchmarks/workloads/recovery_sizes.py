"""Restart after SIGKILL with logs of three sizes: does the time depend on the size of a log?"""

import statistics
import time
from dataclasses import dataclass
from uuid import UUID

from tests.clients.cluster import Cluster
from tests.clients.polling import eventually

from benchmarks.brokers.process import START_SECONDS, Broker, LocalBroker
from benchmarks.log_filling import fill_log
from benchmarks.measurement import Metrics, Scale, Target, Workload
from benchmarks.raw_client import RawProducer, RawShareConsumer

MEBIBYTE = 1 << 20
SIZES = {"100_mib": 100 * MEBIBYTE, "1_gib": 1024 * MEBIBYTE, "4_gib": 4096 * MEBIBYTE}
SMALLEST = "100_mib"
RATIO_MAX = 1.5
RESTARTS = 3
VALUE_BYTES = 100
RECORDS = 1000
AT_ONCE = 100


@dataclass(frozen=True)
class _Filled:
    """A broker with one large log, and a share group that has read it to its end."""

    broker: LocalBroker
    topic: str
    topic_id: UUID
    group: str


class RecoverySizes(Workload):
    """Seconds from the start of the process to the first answer, and to a share group's next record.

    The logs have a control record of another group for every 16 KiB. The ratios are to the smallest log.
    """

    name = "recovery_sizes"
    targets = tuple(
        Target(f"{size}_{event}_ratio", "<=", RATIO_MAX)
        for size in SIZES
        if size != SMALLEST
        for event in ("first_answer", "first_record")
    )
    brokers = ("barnabas",)
    warm_up = False

    def __init__(self, broker: Broker, scale: Scale) -> None:
        super().__init__(broker, scale)
        self._filled: dict[str, _Filled] = {}

    def prepare(self) -> None:
        """A separate broker for each size."""
        for size, size_bytes in SIZES.items():
            fresh = self.broker.fresh()
            assert fresh is not None
            self._filled[size] = _fill(fresh, round(size_bytes * self.scale.factor))

    def finish(self) -> None:
        for filled in self._filled.values():
            filled.broker.stop()

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for size, filled in self._filled.items():
            restarts = [_restart(filled) for _ in range(RESTARTS)]
            for event, seconds in zip(
                ("first_answer", "first_record"), zip(*restarts, strict=True), strict=True
            ):
                metrics[f"{size}_{event}_seconds"] = statistics.median(seconds)
        for target in self.targets:
            event = target.metric.removesuffix("_ratio")
            smallest = f"{SMALLEST}_{'_'.join(event.split('_')[2:])}_seconds"
            metrics[target.metric] = metrics[f"{event}_seconds"] / metrics[smallest]
        return metrics


def _fill(broker: LocalBroker, size_bytes: int) -> _Filled:
    broker.start()
    cluster = Cluster(broker.address)
    topic, group = cluster.topic(), cluster.group(start="latest")
    topic_id = cluster.topic_id(topic)
    cluster.produce(topic, [b"the log is there"])
    broker.stop()
    fill_log(broker.directory / "data", topic, topic_id, size_bytes)
    broker.start()
    filled = _Filled(broker, topic, topic_id, group)
    _take(filled, RECORDS)
    return filled


def _restart(filled: _Filled) -> tuple[float, float]:
    """Seconds to the first answer and to the first record."""
    broker = filled.broker
    broker.kill()
    begin = time.perf_counter()
    broker.launch()
    broker.await_answer()
    first_answer = time.perf_counter() - begin
    _take(filled, 1)
    return first_answer, time.perf_counter() - begin


def _take(filled: _Filled, count: int) -> None:
    """Produce records, and let the group acquire and accept them."""
    address, topic = filled.broker.address, filled.topic
    consumer = RawShareConsumer(address, filled.group, topic, filled.topic_id)
    consumer.join()
    consumer.acquire(1, wait_ms=0)
    producer = RawProducer(address, topic, bytes(VALUE_BYTES))
    for _ in range(0, count, AT_ONCE):
        producer.send(min(count, AT_ONCE))
        producer.receive(min(count, AT_ONCE))
    taken = 0
    while taken < count:
        offsets = eventually(
            lambda: consumer.acquire(AT_ONCE), awaited="a record comes", deadline_seconds=START_SECONDS
        )
        consumer.accept_singly(offsets)
        taken += len(offsets)
    producer.close()
    consumer.close()
