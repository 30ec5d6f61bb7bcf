"""Share groups with `share.assignor.name=load` beside the same with `simple`, on skewed and on even backlogs.

Each member needs a fixed time for a record, as a job would. So the figures show how the work is spread, and
hardly how fast the broker is. `load` can lose: it needs two looks at a running group before it moves
anything, members fetch from more partitions, and on an even backlog every move is a waste.
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
SETTLE_SECONDS = 6.0
"""After this time, all members of a new group have had a heartbeat with the final target."""
VALUE = bytes(100)
ASSIGNORS = ("simple", "load")


class Backlog(NamedTuple):
    """The records of the first partition, and those of each of the others; there is one for each member. They
    are there before the group, or come when its members have settled.
    """

    first: int
    other: int
    is_late: bool

    def of(self, partition: int) -> int:
        return self.other if partition else self.first

    def total(self) -> int:
        return sum(map(self.of, range(MEMBERS)))


BACKLOGS = {
    "skewed": Backlog(10_000, 150, is_late=False),
    "skewed_late": Backlog(15_000, 150, is_late=True),
    "even": Backlog(6_000, 6_000, is_late=False),
}


class _Work:
    """The records that are left to process."""

    def __init__(self, count: int) -> None:
        self.left = count


class ShareAssignor(Workload):
    """The time to the last record, and its ratio: above 1, `load` is faster. It begins when the first member
    joins, or when late records are there.
    """

    name = "share_assignor"
    brokers = ("barnabas",)
    warm_up = False
    targets = (
        Target("skewed_ratio", ">=", 2.0),
        Target("skewed_late_ratio", ">=", 1.5),
        Target("even_ratio", ">=", 0.95),
    )

    def measure(self) -> Metrics:
        metrics: Metrics = {}
        for name, backlog in BACKLOGS.items():
            scaled = backlog._replace(
                first=round(backlog.first * self.scale.factor), other=round(backlog.other * self.scale.factor)
            )
            seconds = [asyncio.run(self._seconds(scaled, assignor)) for assignor in ASSIGNORS]
            metrics |= {f"{name}_{one}_seconds": each for one, each in zip(ASSIGNORS, seconds, strict=True)}
            metrics[f"{name}_ratio"] = seconds[0] / seconds[1]
        return metrics

    async def _seconds(self, backlog: Backlog, assignor: str) -> float:
        topic, group = self.cluster.topic(MEMBERS), self.cluster.group(assignor_name=assignor)
        if not backlog.is_late:
            self._fill(topic, backlog)
        work = _Work(backlog.total())
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(MEMBERS):
                tasks.create_task(self._member(topic, group, work))
            if backlog.is_late:
                await asyncio.sleep(SETTLE_SECONDS)
                await asyncio.to_thread(self._fill, topic, backlog)
                begin = time.perf_counter()
        return time.perf_counter() - begin

    def _fill(self, topic: str, backlog: Backlog) -> None:
        # A member acquires whole batches, so a batch that is larger than a poll would occupy one of them.
        settings = {"batch.num.messages": POLL_RECORDS, "queue.buffering.max.messages": 100_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, **settings})
        for partition in range(MEMBERS):
            for _ in range(backlog.of(partition)):
                producer.produce(topic, VALUE, partition=partition)
        assert not producer.flush(120), "records were not confirmed"

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
