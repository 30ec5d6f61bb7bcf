"""The open logs of this broker's partitions; each is opened at its first use.

A request finds the logs that it needs open, or waits until they are; after that it uses the synchronous
`get`. Every change of a log is reported to one listener, for any cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

from barnabas.coordinator.metadata.image import MetadataImage, Topic
from barnabas.protocol.identity import Place, TopicIdPartition
from barnabas.runtime.logging import get_logger
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import LogClosed, StorageError
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log_config import LogConfig

log = get_logger("partition_logs")

OPENED_AT_ONCE_MAX: Final = 16
"""Logs that are opened at a time for one request: enough to keep the threads busy and to let new logs share
syncs of the data directory, few enough that other requests get a thread in between.
"""


class PartitionLogs:
    """Logs by topic id and partition. Used on the loop's thread only."""

    def __init__(
        self,
        directory: LogDirectory,
        image: MetadataImage,
        *,
        config_of: Callable[[str], LogConfig],
        leader_epoch: int,
        on_opened: Callable[[Topic, int, PartitionLog], None],
        on_moved: Callable[[Place, PartitionLog], None],
        on_pinned: Callable[[TopicIdPartition, PartitionLog, frozenset[str]], None],
        on_replaced: Callable[[TopicIdPartition], None],
    ) -> None:
        """`config_of` returns a topic's settings by its name.

        `on_opened` is called for each log that serves from now on, `on_moved` for high watermarks and log
        starts, `on_pinned` when the checkpoints of some groups keep segments from deletion, `on_replaced`
        when a log was reopened after it went offline.
        """
        self._directory = directory
        self._image = image
        self._config_of = config_of
        self._leader_epoch = leader_epoch
        self._on_opened = on_opened
        self._on_moved = on_moved
        self._on_pinned = on_pinned
        self._on_replaced = on_replaced
        self.by_place: Final[dict[Place, PartitionLog]] = {}
        """All open logs; some may have gone offline."""
        self._replaced: set[TopicIdPartition] = set()
        """Partitions whose log was reopened after it went offline, once or more often."""
        self._opening: dict[TopicIdPartition, asyncio.Task[PartitionLog]] = {}
        self._reported: dict[TopicIdPartition, tuple[str, int | None]] = {}
        """The last logged reason why a partition's log could not be opened, and the log's end then."""
        self._deleting: dict[str, asyncio.Task[None]] = {}

    def find(self, partition: TopicIdPartition) -> PartitionLog | None:
        """The log if it is open and serves."""
        opened = self.by_place.get(partition.place)
        return opened if opened is not None and opened.state.offline is None else None

    def closed_of(self, partitions: Iterable[TopicIdPartition]) -> list[TopicIdPartition]:
        """Those whose log is not open, or does not serve."""
        return [partition for partition in partitions if self.find(partition) is None]

    def get(self, topic: Topic, index: int) -> PartitionLog | None:
        """The log of a topic's partition, if it is open and serves."""
        opened = self.by_place.get((topic.topic_id.int, index))
        return opened if opened is not None and opened.state.offline is None else None

    def was_replaced(self, partition: TopicIdPartition) -> bool:
        """Whether the partition's log was reopened after it went offline."""
        return partition in self._replaced

    async def open(self, topic: Topic, index: int) -> PartitionLog:
        """The log, opened if needed; other callers wait for the same opening. Raises StorageError."""
        partition = TopicIdPartition(topic.topic_id, index)
        opened = self.find(partition)
        if opened is not None:
            return opened
        return await asyncio.shield(self._begin_to_open(topic, partition))

    def reopen(self, partition: TopicIdPartition) -> None:
        """Begin to reopen a log that went offline. The caller does not wait."""
        opened = self.by_place.get(partition.place)
        topic = self._image.topics_by_id.get(partition.topic_id)
        if opened is not None and opened.offline is not None and topic is not None:
            self._begin_to_open(topic, partition).add_done_callback(_take_result)

    def why_unwritable(self, partition: TopicIdPartition) -> StorageError | None:
        """The known reason why the partition cannot be written now."""
        opened = self.by_place.get(partition.place)
        if opened is not None and opened.offline is not None:
            return opened.offline
        return self._directory.full_disk.refusal()

    def open_all(self, partitions: Iterable[tuple[Topic, int]]) -> Awaitable[None] | None:
        """A completion that ends when these logs are open; None if they are, which is the usual case.

        A log that does not exist or cannot be opened is skipped: `get` raises the error afterwards.
        """
        closed = [
            (topic, index)
            for topic, index in partitions
            if 0 <= index < len(topic.partitions) and self.get(topic, index) is None
        ]
        return self._open_each(closed) if closed else None

    def open_by_id(self, partitions: Iterable[TopicIdPartition]) -> Awaitable[None] | None:
        """As `open_all`. Partitions that don't exist are skipped."""
        closed = self.closed_of(partitions)
        if not closed:
            return None
        topics = self._image.topics_by_id
        return self.open_all(
            [
                (topics[partition.topic_id], partition.partition)
                for partition in closed
                if partition.topic_id in topics
            ]
        )

    def delete(self, topic: Topic) -> None:
        """The topic was deleted: close and remove its logs. A topic of the same name is opened after that."""
        for index in range(len(topic.partitions)):
            partition = TopicIdPartition(topic.topic_id, index)
            self.by_place.pop(partition.place, None)
            self._replaced.discard(partition)
            self._reported.pop(partition, None)
        before: list[asyncio.Task[Any]] = [
            task for partition, task in self._opening.items() if partition.topic_id == topic.topic_id
        ]
        if topic.name in self._deleting:
            before.append(self._deleting[topic.name])
        task = asyncio.get_running_loop().create_task(self._delete(topic, before))
        self._deleting[topic.name] = task
        task.add_done_callback(lambda done: self._deleted(topic.name, done))

    async def close(self) -> None:
        """Wait for deletions; the directory closes the logs."""
        await self.deletions_ended()

    async def deletions_ended(self) -> None:
        """Wait until the logs of all deleted topics are removed."""
        if self._deleting:
            await asyncio.wait(self._deleting.values())

    def reconfigure(self, topics: Iterable[Topic]) -> None:
        """Settings of these topics have changed: update their open logs."""
        for topic in topics:
            for index in range(len(topic.partitions)):
                opened = self.by_place.get((topic.topic_id.int, index))
                if opened is not None:
                    opened.config = self._config_of(topic.name)

    async def _open_each(self, partitions: list[tuple[Topic, int]]) -> None:
        waiting = iter(partitions)
        count = min(len(partitions), OPENED_AT_ONCE_MAX)
        await asyncio.gather(*(self._open_in_turn(waiting) for _ in range(count)))

    async def _open_in_turn(self, waiting: Iterator[tuple[Topic, int]]) -> None:
        """Opens the rest one after the other, in parallel with other tasks that share `waiting`."""
        for topic, index in waiting:
            with suppress(StorageError):
                await self.open(topic, index)

    def _begin_to_open(self, topic: Topic, partition: TopicIdPartition) -> asyncio.Task[PartitionLog]:
        task = self._opening.get(partition)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(topic, partition))
            self._opening[partition] = task
            task.add_done_callback(lambda _: self._opening.pop(partition, None))
        return task

    async def _open(self, topic: Topic, partition: TopicIdPartition) -> PartitionLog:
        try:
            return await self._open_existing(topic, partition)
        except LogClosed:
            raise  # its topic was deleted, or the broker ends
        except StorageError as error:
            self._check_exists(topic)
            if not self._directory.full_disk.explains(error):
                self._report(partition, topic.name, str(error))
            raise

    def _report(self, partition: TopicIdPartition, name: str, reason: str) -> None:
        """Logged once per reason while nothing is written: clients ask for the partition again and again, and
        on a full disk its log opens each time, and goes offline with the next write.
        """
        opened = self.by_place.get(partition.place)
        failure = reason, None if opened is None else opened.log_end_offset
        if self._reported.get(partition) != failure:
            self._reported[partition] = failure
            log.error("log not opened", topic=name, partition=partition.partition, reason=reason)

    async def _open_existing(self, topic: Topic, partition: TopicIdPartition) -> PartitionLog:
        self._check_exists(topic)
        deleting = self._deleting.get(topic.name)
        if deleting is not None:
            await asyncio.wait([deleting])
            self._check_exists(topic)
        opened = await self._directory.log(
            topic.name,
            partition.partition,
            topic.topic_id,
            self._config_of(topic.name),
            leader_epoch=self._leader_epoch,
        )
        self._check_exists(topic)
        opened.when_moved(partial(self._on_moved, partition.place, opened))
        opened.pin_listeners.append(partial(self._on_pinned, partition))
        replaced = self.by_place.get(partition.place)
        self.by_place[partition.place] = opened
        if replaced is not None:
            self._replaced.add(partition)
            self._on_replaced(partition)
        self._on_opened(topic, partition.partition, opened)
        return opened

    def _check_exists(self, topic: Topic) -> None:
        """A topic may be deleted while its logs are opened; then the deletion owns them."""
        if topic.topic_id not in self._image.topics_by_id:
            raise LogClosed(f"{topic.name} was deleted.")

    async def _delete(self, topic: Topic, before: list[asyncio.Task[Any]]) -> None:
        """Delete the logs once `before` has ended: earlier deletions, and logs that are being opened.

        The next start repeats a deletion that failed or was interrupted by a crash, because the metadata
        lists it.
        """
        if before:
            await asyncio.wait(before)
        try:
            await self._directory.delete_topic(topic.name)
        except (StorageError, OSError) as error:
            log.error("logs of a deleted topic not removed", topic=topic.name, reason=str(error))
        else:
            self._image.logs_removed(topic.topic_id)

    def _deleted(self, name: str, task: asyncio.Task[None]) -> None:
        if self._deleting.get(name) is task:
            del self._deleting[name]


def _take_result(task: asyncio.Task[PartitionLog]) -> None:
    """The failure was logged where it happened."""
    if not task.cancelled():
        task.exception()
