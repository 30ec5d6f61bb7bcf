"""Share groups with `share.assignor.name=load` beside the same with `simple`, on skewed and on even backlogs.

Each member needs a fixed time for a record, as a job would. So the figures show how the work is spread, and
hardly how fast the broker is. `load` can lose: it needs two looks at the group before it moves anything,
members fetch from more partitions, and on an even backlog every move is a waste.
"""

import asyncio
import time
from typing import NamedTuple

from confluent_kafka import Producer

from barnabas.client import ShareConsumer
from benchmarks.measurement import Metrics, Target, Workload

MEMBERS = 8
RECORD_SECONDS = 0.002
POLL_RECORDS = 100
POLL_SECONDS = 0.5
VALUE = bytes(100)
ASSIGNORS = ("simple", "load")


class Backlog(NamedTuple):
    """The records of the first partition, and those of each of the others; there is one for each member."""

    first: int
    other: int


BACKLOGS = {"skewed": Backlog(20_000, 300), "even": Backlog(7_500, 7_500)}


class _Work:
    """The records that are left to process."""

    def __init__(self, count: int) -> None:
        self.left = count


class ShareAssignor(Workload):
    """The time from the first join to the last record, and its ratio: above 1, `load` is faster."""

    name = "share_assignor"
    brokers = ("barnabas",)
    warm_up = False
    targets = (Target("skewed_ratio", ">=", 1.5), Target("even_ratio", ">=", 0.95))

    def prepare(self) -> None:
        self._topics = {name: self._filled(*self._scaled(one)) for name, one in BACKLOGS.items()}

    def _scaled(self, backlog: Backlog) -> Backlog:
        return Backlog(*(max(round(count * self.scale.factor), 1) for count in backlog))

    def _filled(self, first: int, other: int) -> str:
        topic = self.cluster.topic(MEMBERS)
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for partition in range(MEMBERS):
            for _ in range(other if partition else first):
                producer.produce(topic, VALUE, partition=partition)
        assert not producer.flush(120), "records were not confirmed"
        return topic

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for name, topic in self._topics.items():
            backlog = self._scaled(BACKLOGS[name])
            count = backlog.first + backlog.other * (MEMBERS - 1)
            seconds = [asyncio.run(self._seconds(topic, assignor, count)) for assignor in ASSIGNORS]
            metrics |= {f"{name}_{one}_seconds": each for one, each in zip(ASSIGNORS, seconds, strict=True)}
            metrics[f"{name}_ratio"] = seconds[0] / seconds[1]
        return metrics

    async def _seconds(self, topic: str, assignor: str, count: int) -> float:
        group = self.cluster.group(assignor_name=assignor)
        work = _Work(count)
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(MEMBERS):
                tasks.create_task(self._member(topic, group, work))
        return time.perf_counter() - begin

    async def _member(self, topic: str, group: str, work: _Work) -> None:
        async with ShareConsumer(
            self.bootstrap,
            group=group,
            topics=[topic],
            acknowledgement_mode="implicit",
            max_records=POLL_RECORDS,
        ) as consumer:
            while work.left > 0:
                records = await consumer.poll(timeout=POLL_SECONDS)
                await asyncio.sleep(len(records) * RECORD_SECONDS)
                work.left -= len(records)
            await consumer.commit()
