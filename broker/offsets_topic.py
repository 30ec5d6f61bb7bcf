"""`__consumer_offsets`: where the group coordinator's records are kept, as its log.

The topic is created with the first group, and each partition's log with the first group that hashes to it:
a broker without groups has none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from barnabas.broker.clock import Clock
from barnabas.broker.partition_logs import PartitionLogs
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.image import Topic
from barnabas.coordinator.metadata.topic_decisions import NewTopic
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from barnabas.storage.append import Append
from barnabas.storage.log import PartitionLog

_READ_BYTES = 1024 * 1024

_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": str(100 * 1024 * 1024)}
"""As Kafka creates it: groups are kept however old their records are."""


class OffsetsTopic:
    """Appends to and reads the partitions of `__consumer_offsets` (`CoordinatorLog`)."""

    def __init__(
        self, controller: Controller, logs: PartitionLogs, clock: Clock, partition_count: int
    ) -> None:
        self._controller = controller
        self._logs = logs
        self._clock = clock
        self._partition_count = partition_count
        self._tasks: set[asyncio.Task[None]] = set()

    def append(self, partition: int, records: list[tuple[bytes, bytes | None]]) -> Append:
        """See `CoordinatorLog.append`."""
        topic = self._topic()
        log = None if topic is None else self._logs.get(topic, partition)
        if log is not None:
            return self._append(log, records)
        ticket = Append()
        task = asyncio.get_running_loop().create_task(self._append_when_open(ticket, partition, records))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ticket

    async def read(self, partition: int) -> list[tuple[bytes | None, bytes | None]]:
        """Every record of a partition, oldest first, as (key, value)."""
        topic = self._topic()
        if topic is None or partition >= len(topic.partitions):
            return []
        return list(_records(await self._logs.open(topic, partition)))

    async def close(self) -> None:
        """Wait for what is being appended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _topic(self) -> Topic | None:
        return self._controller.image.topics_by_name.get(GROUP_STATE_TOPIC)

    def _append(self, log: PartitionLog, records: list[tuple[bytes, bytes | None]]) -> Append:
        return log.append_records([(key, value) for key, value in records], self._clock.wall_ms())

    async def _append_when_open(
        self, ticket: Append, partition: int, records: list[tuple[bytes, bytes | None]]
    ) -> None:
        try:
            topic = self._topic() or await self._create()
            await self._append(await self._logs.open(topic, partition), records)
        except Exception as error:
            ticket.fail(error)
        else:
            ticket.complete()

    async def _create(self) -> Topic:
        """The topic; another append may be creating it, too."""
        new_topic = NewTopic(GROUP_STATE_TOPIC, self._partition_count, configs=_CONFIGS)
        (creation,) = await self._controller.create_topics([new_topic], internal=True)
        topic = self._topic()
        if topic is None:
            raise creation.error or RuntimeError(f"{GROUP_STATE_TOPIC} could not be created")
        return topic


def _records(log: PartitionLog) -> Iterator[tuple[bytes | None, bytes | None]]:
    offset = log.log_start_offset
    while offset < log.high_watermark:
        data = b"".join(log.read(offset, bytes_max=_READ_BYTES).buffers)
        for position, header in iterate_headers(data):
            for record in iterate_records(data, position):
                if record.offset >= offset:
                    yield record.key, record.value
            offset = header.last_offset + 1
