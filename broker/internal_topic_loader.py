"""What a coordinator keeps in an internal topic, loaded from its logs: at the start, and when one was opened
anew.

A log that went offline may hold less than the coordinator knows, or more. So once it has been opened anew the
partition is unloaded, and what it then holds is loaded: until that succeeds, nothing of it is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from barnabas.broker.internal_topic import InternalTopic
from barnabas.broker.logging import get_logger
from barnabas.coordinator.runtime.interfaces import Stored
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.errors import InvalidDirectory, StorageError
from barnabas.storage.log_directory import LogDirectory

logger = get_logger("internal_topic")

_PAUSE_SECONDS = 1.0
"""Between attempts to load a partition whose log cannot be read."""


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
        load: Callable[[int, Sequence[Stored]], None],
        unload: Callable[[int], None],
        on_reloaded: Callable[[], None] = _nothing,
    ) -> None:
        """`partition_count` is the coordinator's. `load` takes a partition and all its records, oldest first,
        and may raise RecordFormatError; `unload` forgets a partition, loaded or not. `on_reloaded` is called
        when one was loaded again.
        """
        self._topic = topic
        self._log_directory = log_directory
        self._partition_count = partition_count
        self._load_records = load
        self._unload = unload
        self._on_reloaded = on_reloaded
        self._reloading: dict[int, asyncio.Task[None]] = {}

    async def load(self) -> None:
        """Load every partition, at the start. StorageError; InvalidDirectory if a record is damaged."""
        on_disk = await self._log_directory.partitions_on_disk()
        written = {one.partition for one in on_disk if one.topic == self._topic.name}
        for partition in range(self._partition_count):
            if partition in written:
                await self._load(partition)
            else:
                self._load_records(partition, ())

    def reload(self, partition: int) -> None:
        """The partition's log was opened anew: forget what was loaded, and load what it holds."""
        self._unload(partition)
        earlier = self._reloading.get(partition)
        if earlier is not None:
            earlier.cancel()
        task = asyncio.get_running_loop().create_task(self._reload(partition))
        self._reloading[partition] = task
        task.add_done_callback(lambda _: self._ended(partition, task))

    async def close(self) -> None:
        """Load nothing any more."""
        reloading = list(self._reloading.values())
        for task in reloading:
            task.cancel()
        if reloading:
            await asyncio.wait(reloading)

    async def _load(self, partition: int) -> None:
        began_ms = self._topic.now_ms()
        try:
            self._load_records(partition, await self._topic.read(partition))
        except RecordFormatError as error:
            raise InvalidDirectory(f"{self._topic.name}-{partition} is damaged: {error}") from error
        self._topic.load_ms.observe(self._topic.now_ms() - began_ms)

    async def _reload(self, partition: int) -> None:
        """Until it succeeds: nobody else opens that log again while nothing of it is loaded."""
        while True:
            try:
                await self._load(partition)
            except StorageError as error:
                reason = str(error)
                logger.error(
                    "partition not loaded", topic=self._topic.name, partition=partition, reason=reason
                )
                self._unload(partition)
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return self._on_reloaded()

    def _ended(self, partition: int, task: asyncio.Task[None]) -> None:
        if self._reloading.get(partition) is task:
            del self._reloading[partition]
