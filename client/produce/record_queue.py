"""The records of one partition on their way: batches in the order of `send`, and their results."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.produce.batch_delivery import UNKNOWN_OFFSET, Appended
from barnabas.client.produce.open_batch import OpenBatch
from barnabas.protocol.identity import TopicIdPartition


class RecordMetadata(NamedTuple):
    """The place of a record in the log."""

    topic: str
    partition: int
    offset: int
    """-1 if the broker had the record already, after a lost answer."""
    timestamp_ms: int
    """The producer's time, or the broker's if the topic says so."""


class RecordBatch(OpenBatch):
    """A batch with the futures of its records."""

    __slots__ = ("done", "is_keyless", "opened_at", "reserved_bytes", "results")

    def __init__(self, base_timestamp_ms: int, opened_at: float) -> None:
        super().__init__(base_timestamp_ms)
        self.done = asyncio.Event()
        """Set when its records are delivered, or have failed."""
        self.opened_at = opened_at
        """The time of the event loop."""
        self.reserved_bytes = 0
        """The memory that its records use."""
        self.is_keyless = False
        """Whether it has a record whose partition the producer chose freely."""
        self.results: list[tuple[asyncio.Future[RecordMetadata], int]] = []
        """Each record's future and time."""

    def succeed(self, topic: str, partition: int, appended: Appended) -> None:
        base_offset, append_time_ms = appended
        for index, (result, timestamp_ms) in enumerate(self.results):
            if not result.done():
                offset = base_offset + index if base_offset >= 0 else UNKNOWN_OFFSET
                time_ms = timestamp_ms if append_time_ms < 0 else append_time_ms
                result.set_result(RecordMetadata(topic, partition, offset, time_ms))
        self.done.set()

    def fail(self, error: Exception) -> None:
        for result, _ in self.results:
            if not result.done():
                result.set_exception(error)
                result.exception()  # asyncio warns about exceptions that are never retrieved
        self.done.set()


class RecordQueue:
    """The batches of one partition; the last one is being filled."""

    def __init__(self, topic: str, partition: TopicIdPartition) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[RecordBatch] = deque()
        self.in_flight: RecordBatch | None = None
        self.task: asyncio.Task[None] | None = None
        """Delivers the batches, as long as there are some."""
        self.filled = asyncio.Event()
        """Set when the first batch is full, or need not wait for more records."""

    @property
    def pending(self) -> list[RecordBatch]:
        """All batches without a result."""
        return [*self.batches] if self.in_flight is None else [self.in_flight, *self.batches]

    def take_all(self) -> Sequence[RecordBatch]:
        """Remove the batches that are not in flight."""
        taken = list(self.batches)
        self.batches.clear()
        return taken
