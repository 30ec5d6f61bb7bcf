"""The project's asyncio share consumer beside librdkafka's: the cost of Python in the client. No target."""

import asyncio
import time

from barnabas.client import ShareConsumer
from benchmarks.clients import fill, share_rate
from benchmarks.measurement import Metrics, Workload

RECORDS = 200_000
VALUE_BYTES = 100
BATCH_RECORDS = 100


class ShareAsyncio(Workload):
    """Records per second after the first batch: polled and accepted implicitly, and one by one."""

    name = "share_asyncio"

    def prepare(self) -> None:
        self._count = self.scale.records(RECORDS)
        self._topic = self.cluster.topic()
        fill(self.bootstrap, self._topic, self._count, VALUE_BYTES, batch_num_messages=BATCH_RECORDS)

    def measure(self) -> Metrics:
        group = self.cluster.group()
        return {
            "polled_per_second": asyncio.run(self._polled()),
            "one_by_one_per_second": asyncio.run(self._one_by_one()),
            "confluent_per_second": share_rate(self.bootstrap, self._topic, group, self._count, "implicit"),
        }

    async def _polled(self) -> float:
        async with ShareConsumer(
            self.bootstrap,
            group=self.cluster.group(),
            topics=[self._topic],
            acknowledgement_mode="implicit",
        ) as consumer:
            first = len(await consumer.poll())
            begin, taken = time.perf_counter(), 0
            while first + taken < self._count:
                taken += len(await consumer.poll())
            seconds = time.perf_counter() - begin
            await consumer.commit()
        return taken / seconds

    async def _one_by_one(self) -> float:
        async with ShareConsumer(
            self.bootstrap, group=self.cluster.group(), topics=[self._topic]
        ) as consumer:
            begin, taken = 0.0, 0
            async for record in consumer:
                async with record:
                    taken += 1
                if taken == 1:
                    begin = time.perf_counter()
                if taken == self._count:
                    break
            seconds = time.perf_counter() - begin
            await consumer.commit()
        return (taken - 1) / seconds
