"""What a coordinator keeps in an internal topic, loaded from its logs: at the start, and when one was opened
anew.

Others are served while a partition is loaded, however much it holds. A log that went offline may hold less
than the coordinator knows, or more. So once it has been opened anew the partition is unloaded, and what it
then holds is loaded: until that succeeds, nothing of it is served. Nor is anything of a partition that cannot
be loaded at the start; it keeps no other from being served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.coordinator.replay.interfaces import Stored
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.logging import get_logger
from barnabas.runtime.turns import Turns
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import CorruptBatch, InvalidDirectory, StorageError

logger = get_logger("internal_topic")

_STEPS_PER_RECORD = 5
"""What the replay of one takes of a turn."""

_PAUSE_SECONDS = 1.0
"""Between attempts to load a partition whose log cannot be read."""
_DAMAGED_PAUSE_SECONDS = 60.0
"""The same if it is damaged, before the second attempt; each pause is twice the one before. A disk seldom
takes that back, and each attempt reads the log up to the damage.
"""
_DAMAGED_PAUSE_SECONDS_MAX = 3600.0


def _nothing() -> None:
    """The default of a signal that nobody listens to."""


class InternalTopicLoader:
    """Loads the partitions of one internal topic into its coordinator."""

    def __init__(
        self,
        topic: InternalTopic,
        log_directory: LogDirectory,
        *,
        partition_count: int,
        load: Callable[[int, Sequence[Stored]], Iterator[None]],
        unload: Callable[[int], None],
        resize: Callable[[int], None],
        on_reloaded: Callable[[], None] = _nothing,
    ) -> None:
        """`partition_count` is the coordinator's. `load` takes a partition and all its records, oldest first,
        takes a step with each, and may raise RecordFormatError; `unload` forgets a partition, loaded or not,
        or in part; `resize` gives the coordinator another number of partitions, when all are unloaded.
        `on_reloaded` is called when one was loaded again, or later than the others.
        """
        self._topic = topic
        self._log_directory = log_directory
        self._partition_count = partition_count
        self._load_records = load
        self._unload = unload
        self._resize = resize
        self._on_reloaded = on_reloaded
        self._reloading: dict[int, asyncio.Task[None]] = {}
        self._told: dict[int, str] = {}
        """Why a partition that isn't loaded couldn't be, as it was logged last."""
        self._damages: dict[int, str] = {}

    @property
    def damage(self) -> str | None:
        """Why a partition is not loaded until a person has repaired it; None if there is none such."""
        return next(iter(self._damages.values()), None)

    async def load(self) -> None:
        """Load every partition, at the start. One that cannot be is left out, and tried again from then on;
        OSError.
        """
        for partition in await self._written():
            error = await self._try_to_load(partition)
            if error is not None:
                self._begin(partition, self._retry(partition, error))

    async def load_all(self) -> None:
        """Load every partition, or raise StorageError; InvalidDirectory if a record makes no sense."""
        for partition in await self._written():
            await self._load(partition)

    def reload(self, partition: int) -> None:
        """The partition's log was opened anew: forget what was loaded, and load what it holds."""
        self._unload(partition)
        self._begin(partition, self._reload(partition))

    def fit(self) -> None:
        """The topic has just been created, by whomever: the coordinator has as many partitions as it from now
        on. They are loaded at once, with nothing in them.
        """
        partition_count = self._topic.partition_count
        if partition_count == self._partition_count:
            return
        for partition in range(self._partition_count):
            self._unload(partition)
        self._resize(partition_count)
        self._partition_count = partition_count
        for partition in range(partition_count):
            for _ in self._load_records(partition, ()):
                pass
        self._on_reloaded()

    async def close(self) -> None:
        """Load nothing any more, and leave nothing that is loaded in part."""
        reloading = dict(self._reloading)
        for task in reloading.values():
            task.cancel()
        if reloading:
            await asyncio.wait(reloading.values())
        for partition in reloading:
            self._unload(partition)

    async def _written(self) -> list[int]:
        """The partitions that have a log; the others are loaded, with nothing in them."""
        on_disk = await self._log_directory.partitions_on_disk()
        written = {one.partition for one in on_disk if one.topic == self._topic.name}
        for partition in range(self._partition_count):
            if partition not in written:
                await self._replay(partition, ())
        return [partition for partition in range(self._partition_count) if partition in written]

    async def _load(self, partition: int) -> None:
        began_ms = self._topic.now_ms()
        try:
            await self._replay(partition, await self._topic.read(partition))
        except RecordFormatError as error:
            raise InvalidDirectory(f"{self._topic.name}-{partition} is damaged: {error}") from error
        self._topic.load_ms.observe(self._topic.now_ms() - began_ms)

    async def _replay(self, partition: int, records: Sequence[Stored]) -> None:
        """Nothing is appended meanwhile: that takes a partition that is loaded."""
        turns = Turns()
        for _ in self._load_records(partition, records):
            await turns.took(_STEPS_PER_RECORD)

    async def _try_to_load(self, partition: int) -> StorageError | None:
        """Why that failed; None if it succeeded."""
        try:
            await self._load(partition)
        except StorageError as error:
            self._unload(partition)
            self._tell(partition, error)
            if _needs_repair(error):
                self._damages[partition] = str(error)
            return error
        self._told.pop(partition, None)
        self._damages.pop(partition, None)
        return None

    async def _reload(self, partition: int) -> None:
        await self._retry(partition, await self._try_to_load(partition))

    async def _retry(self, partition: int, error: StorageError | None) -> None:
        """Until it succeeds: nobody else opens that log again while nothing of it is loaded."""
        damaged_pause_seconds = _DAMAGED_PAUSE_SECONDS
        while error is not None:
            if _needs_repair(error):
                await asyncio.sleep(damaged_pause_seconds)
                damaged_pause_seconds = min(2 * damaged_pause_seconds, _DAMAGED_PAUSE_SECONDS_MAX)
            else:
                await asyncio.sleep(_PAUSE_SECONDS)
            error = await self._try_to_load(partition)
        self._on_reloaded()

    def _tell(self, partition: int, error: StorageError) -> None:
        """Once for each reason, and never of a full disk, which has a line of its own."""
        reason = str(error)
        if self._log_directory.full_disk.explains(error) or self._told.get(partition) == reason:
            return
        self._told[partition] = reason
        logger.error(
            "partition not loaded: nothing of it is served until it is",
            topic=self._topic.name,
            partition=partition,
            reason=reason,
            **self._remedy(partition, error),
        )

    def _remedy(self, partition: int, error: StorageError) -> dict[str, str]:
        """What somebody has to do, if it won't do to wait; docs/log-tools.md has the reasons."""
        directory = f"{self._log_directory.path}/{self._topic.name}-{partition}"
        if isinstance(error, CorruptBatch):
            command = f"barnabas log drop-damaged {directory}"
            return {"remedy": f"restore the file, or stop the broker, run `{command}` and start it again"}
        if isinstance(error, InvalidDirectory):
            return {"remedy": f"see what is there with `barnabas log dump --records {directory}`"}
        return {}

    def _begin(self, partition: int, loading: Coroutine[Any, Any, None]) -> None:
        """In the place of what may be loading it."""
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
