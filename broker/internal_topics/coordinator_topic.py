"""An internal topic with the coordinator over it: loads the coordinator from the topic's logs, at the start
and after a log was reopened.

Other requests are served while a partition is loaded, however much it holds. A log that went offline may hold
less than the coordinator knows, or more. So when it has been reopened the partition is unloaded and loaded
again; until that succeeds its operations are refused. A partition that cannot be loaded at the start is
refused in the same way, and delays no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import NamedTuple, Protocol

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.internal_topics import InternalTopicSpec
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.coordinator.replay.interfaces import Stored
from barnabas.protocol.errors import without_frames
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines, Expirable
from barnabas.runtime.logging import get_logger
from barnabas.runtime.turns import Turns
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import CorruptBatch, InvalidDirectory, StorageError

logger = get_logger("internal_topic")

_STEPS_PER_RECORD = 5
"""The part of a turn that the replay of one record takes."""

_PAUSE_SECONDS = 1.0
"""Between attempts to load a partition whose log cannot be read."""
_DAMAGED_PAUSE_SECONDS = 60.0
"""The same for a damaged log, before the second attempt; each pause is twice the one before. Damage seldom
goes away, and each attempt reads the log up to it.
"""
_DAMAGED_PAUSE_SECONDS_MAX = 3600.0


class TopicCoordinator(Protocol):
    """A coordinator whose state is in an internal topic."""

    @property
    def partition_count(self) -> int: ...

    def load(self, partition: int, records: Sequence[Stored]) -> Iterator[None]:
        """Take over a partition's records, oldest first, one per step. RecordFormatError."""
        ...

    def unload(self, partition: int) -> None:
        """Forget a partition, whether it is loaded, in part or not at all."""
        ...

    def resize(self, partition_count: int) -> None:
        """Have this number of partitions; all earlier ones have been unloaded."""
        ...


class BrokerParts(NamedTuple):
    """The parts of the broker that every coordinator's topic uses."""

    config: BrokerConfig
    metadata: Controller
    logs: PartitionLogs
    log_directory: LogDirectory
    clock: Clock
    deadlines: Deadlines

    def internal_topic(self, spec: InternalTopicSpec) -> InternalTopic:
        return InternalTopic(spec, self.metadata, self.logs, self.clock)


class CoordinatorTopic:
    """One internal topic and the coordinator over it. Subclasses build both."""

    def __init__(self, topic: InternalTopic, coordinator: TopicCoordinator, parts: BrokerParts) -> None:
        self.topic = topic
        self._coordinator = coordinator
        self._log_directory = parts.log_directory
        self._deadlines = parts.deadlines
        self._reloading: dict[int, asyncio.Task[None]] = {}
        self._reported: dict[int, str] = {}
        """The last reason that was logged, for each partition that could not be loaded."""
        self._damages: dict[int, str] = {}

    @property
    def damage(self) -> str | None:
        """The reason why a partition is not loaded until a person has repaired it; None without damage."""
        return next(iter(self._damages.values()), None)

    async def load(self) -> None:
        """Load every partition, at the start. A partition that cannot be loaded is tried again from then on;
        OSError.
        """
        for partition in await self._partitions_with_logs():
            error = await self._try_to_load(partition)
            if error is not None:
                self._start(partition, self._retry(partition, error))

    async def load_all(self) -> None:
        """Load every partition, or raise StorageError; InvalidDirectory if a record is malformed."""
        for partition in await self._partitions_with_logs():
            await self._load(partition)

    def reload(self, partition: int) -> None:
        """The partition's log was reopened: forget the partition, and load the records of the log."""
        self._coordinator.unload(partition)
        self._start(partition, self._reload(partition))

    def fit(self) -> None:
        """The topic has just been created: the coordinator gets its number of partitions. They are loaded at
        once, with no records.
        """
        if self.topic.partition_count != self._coordinator.partition_count:
            self._unload_all()
            self.begin_empty()

    async def unload(self) -> None:
        """Forget every partition, and wait for the writes under way: the topic is about to be deleted."""
        await self._stop_loading()
        self._unload_all()
        await self.topic.drained()

    def begin_empty(self) -> None:
        """Load every partition with no records, after all were unloaded."""
        partition_count = self.topic.partition_count
        self._coordinator.resize(partition_count)
        for partition in range(partition_count):
            for _ in self._coordinator.load(partition, ()):
                pass
        self._on_loaded()

    def _unload_all(self) -> None:
        for partition in range(self._coordinator.partition_count):
            self._coordinator.unload(partition)

    async def _stop_loading(self) -> None:
        reloading = dict(self._reloading)
        for task in reloading.values():
            task.cancel()
        if reloading:
            await asyncio.wait(reloading.values())
        for partition in reloading:
            self._coordinator.unload(partition)

    async def close(self) -> None:
        """Stop loading, and wait for the writes under way. No client is connected any more."""
        await self._stop_loading()
        await self._finish_work()
        await self.topic.drained()

    def _on_loaded(self) -> None:
        """A partition was loaded, again or later than the others. Subclasses also call it after `load`."""

    async def _finish_work(self) -> None:
        """End the work under way that may still write to the topic."""

    def _schedule(self, owner: Expirable) -> None:
        """The owner's next deadline may have moved."""
        deadline_ms = owner.next_deadline_ms()
        if deadline_ms is not None:
            self._deadlines.schedule(owner, deadline_ms)

    async def _partitions_with_logs(self) -> list[int]:
        """The partitions that have a log. The others are loaded here, with no records."""
        on_disk = await self._log_directory.partitions_on_disk()
        written = {partition.partition for partition in on_disk if partition.topic == self.topic.name}
        partitions = range(self._coordinator.partition_count)
        for partition in partitions:
            if partition not in written:
                await self._replay(partition, ())
        return [partition for partition in partitions if partition in written]

    async def _load(self, partition: int) -> None:
        began_ms = self.topic.now_ms()
        try:
            await self._replay(partition, await self.topic.read(partition))
        except RecordFormatError as error:
            raise InvalidDirectory(f"{self.topic.name}-{partition} is damaged: {error}") from error
        self.topic.load_ms.observe(self.topic.now_ms() - began_ms)

    async def _replay(self, partition: int, records: Sequence[Stored]) -> None:
        """Nothing is appended meanwhile, because a partition that is not loaded refuses operations."""
        turns = Turns()
        for _ in self._coordinator.load(partition, records):
            await turns.took(_STEPS_PER_RECORD)

    async def _try_to_load(self, partition: int) -> StorageError | None:
        """The reason of a failure; None after a success."""
        try:
            await self._load(partition)
        except StorageError as error:
            self._coordinator.unload(partition)
            self._report(partition, error)
            if _needs_repair(error):
                self._damages[partition] = str(error)
            return without_frames(error)
        self._reported.pop(partition, None)
        self._damages.pop(partition, None)
        return None

    async def _reload(self, partition: int) -> None:
        await self._retry(partition, await self._try_to_load(partition))

    async def _retry(self, partition: int, error: StorageError | None) -> None:
        """Repeat until it succeeds: no other request reopens the log while the partition is not loaded."""
        damaged_pause_seconds = _DAMAGED_PAUSE_SECONDS
        while error is not None:
            if _needs_repair(error):
                await asyncio.sleep(damaged_pause_seconds)
                damaged_pause_seconds = min(2 * damaged_pause_seconds, _DAMAGED_PAUSE_SECONDS_MAX)
            else:
                await asyncio.sleep(_PAUSE_SECONDS)
            error = await self._try_to_load(partition)
        self._on_loaded()

    def _report(self, partition: int, error: StorageError) -> None:
        """Log each new reason once. A full disk is reported elsewhere."""
        reason = str(error)
        if self._log_directory.full_disk.explains(error) or self._reported.get(partition) == reason:
            return
        self._reported[partition] = reason
        logger.error(
            "partition not loaded: its requests are refused until it is",
            topic=self.topic.name,
            partition=partition,
            reason=reason,
            **self._remedy(partition, error),
        )

    def _remedy(self, partition: int, error: StorageError) -> dict[str, str]:
        """The action for a person, if waiting does not help; docs/log-tools.md has the reasons."""
        directory = f"{self._log_directory.path}/{self.topic.name}-{partition}"
        if isinstance(error, CorruptBatch):
            command = f"barnabas log drop-damaged {directory}"
            return {"remedy": f"restore the file, or stop the broker, run `{command}` and start it again"}
        if isinstance(error, InvalidDirectory):
            return {"remedy": f"inspect the records with `barnabas log dump --records {directory}`"}
        return {}

    def _start(self, partition: int, loading: Coroutine[None, None, None]) -> None:
        """Start to load a partition, and cancel an earlier attempt."""
        earlier = self._reloading.get(partition)
        if earlier is not None:
            earlier.cancel()
        task = asyncio.get_running_loop().create_task(loading)
        self._reloading[partition] = task
        task.add_done_callback(lambda _: self._ended(partition, task))

    def _ended(self, partition: int, task: asyncio.Task[None]) -> None:
        if self._reloading.get(partition) is task:
            del self._reloading[partition]


def _needs_repair(error: StorageError) -> bool:
    return isinstance(error, CorruptBatch | InvalidDirectory)
