"""Writes record batches in order, for a caller that stops at the first error: see `batch_delivery`.

    batches = BatchWriter(cluster, writer)
    await batches.write("orders", partition, Body(...))   # returns when there is room for the next
    await batches.flush()                                 # returns when all are in the log

Each partition has at most one batch in flight, and all partitions together have `BATCHES_MAX`. An error that
is not temporary is raised by the next call, and nothing can be written after it.
"""

from __future__ import annotations

import asyncio

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.produce.batch_delivery import BATCHES_MAX, BatchDelivery, Body
from barnabas.client.produce.transactions import Writer
from barnabas.client.waiting.patience import Retries
from barnabas.protocol.identity import TopicIdPartition


class BatchWriter:
    """Writes as one `Writer`. Call `close` once; the cluster stays open."""

    def __init__(self, cluster: Cluster, writer: Writer, retries: Retries | None = None) -> None:
        self._delivery = BatchDelivery(cluster, writer, retries)
        self._room = asyncio.Semaphore(BATCHES_MAX)
        self._turns: dict[TopicIdPartition, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: Exception | None = None

    async def write(self, topic: str, partition: TopicIdPartition, body: Body) -> None:
        """Write a batch after the batches already given for the partition.

        Raises `ProduceError`, `TopicGoneError` or `BrokerUnavailableError` for this batch or an earlier one.
        """
        self._raise_error()
        await self._room.acquire()
        if self._error is not None:
            self._room.release()
            raise self._error
        task = asyncio.get_running_loop().create_task(self._deliver(topic, partition, body))
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        await asyncio.sleep(0)

    async def flush(self) -> None:
        """Return once all batches given so far are in the log; raises the errors of `write`."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self._raise_error()

    def close(self) -> None:
        """Close the connections; batches in flight may or may not be written."""
        for task in self._tasks:
            task.cancel()
        self._delivery.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _deliver(self, topic: str, partition: TopicIdPartition, body: Body) -> None:
        turn = self._turns.setdefault(partition, asyncio.Lock())
        async with turn:
            # No batch may follow a failed one, because the records would be out of order.
            if self._error is not None:
                return
            try:
                await self._delivery.deliver(topic, partition, body)
            except Exception as error:
                self._error = self._error or error
